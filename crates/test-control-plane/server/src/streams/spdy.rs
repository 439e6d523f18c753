//! Frames of SPDY/3.1, in which kubectl tunnels the streams of `port-forward`.

use bytes::{Buf, Bytes, BytesMut};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

/// Limit of a frame in bytes.
const FRAME_MAX: usize = 1024 * 1024;

/// Limit of the headers of a stream in bytes.
const HEADERS_MAX: usize = 16 * 1024;

/// The farthest that compressed headers refer back, in bytes.
const WINDOW: usize = 32 * 1024;

/// First bytes of a control frame: its flag, and version 3.
const CONTROL: [u8; 2] = [0x80, 3];

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;

/// The flag of a stream's last frame.
const LAST: u8 = 1;

/// A frame of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Opens a stream.
    Open {
        stream: u32,
        headers: Vec<(String, String)>,
    },
    /// Carries data; the last one ends the client's side of the stream.
    Data {
        stream: u32,
        data: Bytes,
        is_last: bool,
    },
    /// Ends both sides of a stream.
    Reset { stream: u32 },
    /// Must be echoed to the client.
    Ping(u32),
    /// Needs no response.
    Other,
}

/// The client broke the protocol or a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Splits what the client sends into frames.
#[derive(Default)]
pub(super) struct Decoder {
    buffer: BytesMut,
    headers: HeaderDecoder,
}

impl Decoder {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next frame, if it is complete.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, Malformed> {
        let Some(header) = self.buffer.first_chunk::<8>() else {
            return Ok(None);
        };
        let [a, b, c, d, flags, length @ ..] = *header;
        let length = length
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        if length > FRAME_MAX {
            return Err(Malformed);
        }
        if self.buffer.len() < 8 + length {
            return Ok(None);
        }
        self.buffer.advance(8);
        let mut payload = self.buffer.split_to(length).freeze();
        if a & 0x80 == 0 {
            return Ok(Some(Frame::Data {
                stream: u32::from_be_bytes([a, b, c, d]),
                data: payload,
                is_last: flags & LAST != 0,
            }));
        }
        let kind = u16::from_be_bytes([c, d]);
        if [a, b] != CONTROL || !matches!(kind, SYN_STREAM | RST_STREAM | PING) {
            return Ok(Some(Frame::Other));
        }
        let number = payload.try_get_u32().map_err(|_| Malformed)?;
        Ok(Some(match kind {
            SYN_STREAM => {
                // The associated stream, and the priority.
                let block = payload.get(6..).ok_or(Malformed)?;
                let headers = self.headers.decode(block).ok_or(Malformed)?;
                Frame::Open {
                    stream: number,
                    headers,
                }
            }
            RST_STREAM => Frame::Reset { stream: number },
            _ => Frame::Ping(number),
        }))
    }
}

/// Decompresses the headers of one connection.
#[derive(Default)]
struct HeaderDecoder {
    inflate: DecompressorOxide,
    /// The latest text; empty before the first headers.
    window: Vec<u8>,
}

impl HeaderDecoder {
    fn decode(&mut self, block: &[u8]) -> Option<Vec<(String, String)>> {
        let mut block = block;
        if self.window.is_empty() {
            // The header of the compressed stream, and the checksum of the dictionary.
            block = block.get(6..)?;
            self.window = dictionary();
        }
        let start = self.window.len();
        self.window.resize(start + HEADERS_MAX, 0);
        let flags = TINFL_FLAG_HAS_MORE_INPUT | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, read, written) =
            decompress(&mut self.inflate, block, &mut self.window, start, flags);
        if status != TINFLStatus::NeedsMoreInput || read < block.len() {
            return None;
        }
        self.window.truncate(start + written);
        let headers = parse(self.window.get(start..)?);
        self.window
            .drain(..self.window.len().saturating_sub(WINDOW));
        headers
    }
}

/// Parses decompressed headers.
fn parse(text: &[u8]) -> Option<Vec<(String, String)>> {
    let mut rest = text;
    let count = rest.try_get_u32().ok()?;
    let mut next = || {
        let length = usize::try_from(rest.try_get_u32().ok()?).ok()?;
        let (text, after) = rest.split_at_checked(length)?;
        rest = after;
        String::from_utf8(text.to_vec()).ok()
    };
    (0..count).map(|_| Some((next()?, next()?))).collect()
}

/// Responses of the server that need the state of the connection.
#[derive(Default)]
pub(super) struct Encoder {
    has_begun: bool,
}

impl Encoder {
    /// Returns the frame that accepts a stream, without headers.
    pub(super) fn accept(&mut self, stream: u32) -> Vec<u8> {
        let mut payload = stream.to_be_bytes().to_vec();
        if !std::mem::replace(&mut self.has_begun, true) {
            payload.extend([0x78, 0x01]);
        }
        // A stored block with the number of headers, and an empty block, which flushes it.
        payload.extend([0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0]);
        payload.extend([0, 0, 0, 0xff, 0xff]);
        control(SYN_REPLY, &payload)
    }
}

/// Returns the response to a ping.
pub(super) fn ping(number: u32) -> Vec<u8> {
    control(PING, &number.to_be_bytes())
}

/// Returns a frame with data.
pub(super) fn data(stream: u32, data: &[u8], is_last: bool) -> Vec<u8> {
    let flags = if is_last { LAST } else { 0 };
    frame(stream.to_be_bytes(), flags, data)
}

fn control(kind: u16, payload: &[u8]) -> Vec<u8> {
    let [a, b] = CONTROL;
    let [c, d] = kind.to_be_bytes();
    frame([a, b, c, d], 0, payload)
}

fn frame(first: [u8; 4], flags: u8, payload: &[u8]) -> Vec<u8> {
    // Payloads are pieces of bounded reads.
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let [_, length @ ..] = length.to_be_bytes();
    let mut frame = first.to_vec();
    frame.push(flags);
    frame.extend(length);
    frame.extend(payload);
    frame
}

/// Names in the dictionary, each preceded by its length.
const NAMES: &str = "options,head,post,put,delete,trace,accept,accept-charset,accept-encoding,\
    accept-language,accept-ranges,age,allow,authorization,cache-control,connection,content-base,\
    content-encoding,content-language,content-length,content-location,content-md5,content-range,\
    content-type,date,etag,expect,expires,from,host,if-match,if-modified-since,if-none-match,\
    if-range,if-unmodified-since,last-modified,location,max-forwards,pragma,proxy-authenticate,\
    proxy-authorization,range,referer,retry-after,server,te,trailer,transfer-encoding,upgrade,\
    user-agent,vary,via,warning,www-authenticate,method,get,status,200 OK,version,HTTP/1.1,url,\
    public,set-cookie,keep-alive,origin";

/// The rest of the dictionary.
const TEXT: &str = "10010120120220520630030230330430530630740240540640740840941041141241341441541\
    6417502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad \
    Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not \
    Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 \
    Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,\
    application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,\
    deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

/// Returns the dictionary of compressed headers, as SPDY/3 defines it.
fn dictionary() -> Vec<u8> {
    let names = NAMES.split(',').flat_map(|name| {
        let length = u32::try_from(name.len()).unwrap_or_default();
        length.to_be_bytes().into_iter().chain(name.bytes())
    });
    names.chain(TEXT.bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        digits.map(|pair| byte(pair).unwrap()).collect()
    }

    #[test]
    fn streams_are_opened_by_frames_in_pieces() {
        // Written by another implementation.
        let first = bytes(
            "\
             800300010000003d0000000100000000000078f9e3c6a7c202253a48f95b044eea16061606409ab3\
             08125f99a074cc68004e892545a989b9d0c2863515141500000000ffff",
        );
        let second = bytes(
            "\
             800300010000001600000003000000000000225333a8a44a04000000ffff",
        );
        let mut decoder = Decoder::default();
        let (start, end) = first.split_at(20);
        decoder.push(start);
        assert_eq!(decoder.next(), Ok(None));
        decoder.push(end);
        decoder.push(&second);
        decoder.push(&data(3, b"hello", true));
        for (stream, kind) in [(1, "error"), (3, "data")] {
            let headers = [("port", "8080"), ("requestid", "0"), ("streamtype", kind)];
            let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let headers = headers.to_vec();
            assert_eq!(decoder.next(), Ok(Some(Frame::Open { stream, headers })));
        }
        let expected = Frame::Data {
            stream: 3,
            data: Bytes::from("hello"),
            is_last: true,
        };
        assert_eq!(decoder.next(), Ok(Some(expected)));
        assert_eq!(decoder.next(), Ok(None));
    }

    #[test]
    fn malformed_frames_are_refused() {
        let mut oversized = data(1, b"", false);
        oversized[5] = 0xff;
        let headers = control(SYN_STREAM, &[0xff; 40]);
        let short = control(PING, b"x");
        for sent in [oversized, headers, short] {
            let mut decoder = Decoder::default();
            decoder.push(&sent);
            assert_eq!(decoder.next(), Err(Malformed), "{sent:?}");
        }
    }
}
