//! Protobuf fields as Go's generated code writes them.

use std::convert::Infallible;

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;

/// Appends a number or a boolean.
pub(crate) fn number(out: &mut Vec<u8>, number: u32, value: i64) {
    varint(out, u64::from(number) << 3 | VARINT);
    varint(out, value.cast_unsigned());
}

/// Appends a double.
pub(crate) fn double(out: &mut Vec<u8>, number: u32, value: f64) {
    varint(out, u64::from(number) << 3 | FIXED_64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a string or bytes.
pub(crate) fn bytes(out: &mut Vec<u8>, number: u32, bytes: impl AsRef<[u8]>) {
    let bytes = bytes.as_ref();
    varint(out, u64::from(number) << 3 | BYTES);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a message, whose fields `write` appends.
pub(crate) fn message(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let Ok(()) = try_message(out, number, |out| {
        write(out);
        Ok::<_, Infallible>(())
    });
}

/// Like [`message`], for fields that can fail.
///
/// # Errors
///
/// Those of `write`.
pub(crate) fn try_message<E>(
    out: &mut Vec<u8>,
    number: u32,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    varint(out, u64::from(number) << 3 | BYTES);
    let start = out.len();
    // The length of most messages fits into one byte.
    out.push(0);
    write(out)?;
    let length = out.len() - start - 1;
    if let Ok(short @ ..0x80) = u8::try_from(length) {
        out[start] = short;
    } else {
        let mut long = Vec::with_capacity(10);
        varint(&mut long, length as u64);
        out.splice(start..=start, long);
    }
    Ok(())
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}
