//! Go's decode and encode of typed values, over plain JSON.
//!
//! Upstream: `json.Unmarshal` and `json.Marshal` over the API types.

use std::str::FromStr;

use serde_json::Map;
use serde_json::Number;
use serde_json::Value;

use super::base64;
use super::error::DecodeError;
use super::go_time;
use super::table::Alternative;
use super::table::Field;
use super::table::Kind;
use super::table::Type;
use super::table::TypeName;
use super::table::go_name;
use super::unknown::UnknownMembers;
use super::words::Shape;
use crate::json::go_number;
use crate::quantity::Quantity;
use crate::quantity::QuantityError;

/// Decodes one value.
///
/// Like Go, it continues after a value of the wrong type and reports the first of them at the end;
/// an invalid quantity, time or number-or-string stops it immediately.
pub(super) struct Decoder<'a> {
    unknown: UnknownMembers,
    /// The first value of the wrong type.
    mismatch: Option<DecodeError>,
    /// Go struct that contains the current value; empty at the root.
    holder: &'a str,
    /// Go struct that contains a value which is decoded by hand: errors in it name this struct.
    outer: Option<&'a str>,
    /// Path to the current value; lists and maps add nothing to it.
    path: Vec<&'a str>,
}

impl<'a> Decoder<'a> {
    /// Creates a decoder at `path` in a stateful set, or at the root of any object.
    pub(super) fn new(unknown: UnknownMembers, path: &'a str) -> Self {
        let holder = if path.is_empty() {
            ""
        } else {
            holder_in_set(path)
        };
        let path = if path.is_empty() {
            Vec::new()
        } else {
            vec![path]
        };
        Self {
            unknown,
            mismatch: None,
            holder,
            outer: None,
            path,
        }
    }

    /// Decodes `value` as an object of the named type.
    pub(super) fn run(mut self, of: TypeName<'_>, value: Value) -> Result<Value, DecodeError> {
        let decoded = self.object(of, value)?;
        match self.mismatch {
            Some(mismatch) => Err(mismatch),
            None => Ok(decoded),
        }
    }

    fn object(&mut self, of: TypeName<'_>, value: Value) -> Result<Value, DecodeError> {
        let unknown_type = || DecodeError::UnknownType(of.name.to_owned());
        let found = of.find().ok_or_else(unknown_type)?;
        let mut decoded = Map::new();
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let field = found.field(&name);
                    self.member(found.go_name(), field, name, member, &mut decoded)?;
                }
            }
            Value::Null => {}
            other => self.note_mismatch(&other, &found.go_type()),
        }
        for field in found.fields.iter().filter(|field| field.always) {
            if !decoded.contains_key(field.name) {
                decoded.insert(field.name.to_owned(), zero(field));
            }
        }
        Ok(Value::Object(decoded))
    }

    fn member(
        &mut self,
        type_name: &'static str,
        field: Option<&'static Field>,
        name: String,
        member: Value,
        decoded: &mut Map<String, Value>,
    ) -> Result<(), DecodeError> {
        let Some(field) = field else {
            if self.unknown == UnknownMembers::Keep {
                decoded.insert(name, member);
            }
            return Ok(());
        };
        let holder = std::mem::replace(&mut self.holder, type_name);
        let depth = self.path.len();
        self.path.extend(field.embedded);
        self.path.push(field.name);
        if let Some(value) = self.field(field, member)? {
            decoded.insert(name, value);
        }
        self.path.truncate(depth);
        self.holder = holder;
        Ok(())
    }

    /// Returns Go's encoding of the field; `None` if Go omits it.
    fn field(&mut self, field: &Field, value: Value) -> Result<Option<Value>, DecodeError> {
        let decoded = match (field.shape, value) {
            (Shape::Pointer | Shape::List | Shape::Map, Value::Null) => Value::Null,
            (Shape::Pointer, value) => return self.value(field.kind, value).map(Some),
            (Shape::Plain, value) => {
                let decoded = self.value(field.kind, value)?;
                return Ok((field.always || !is_zero(&decoded)).then_some(decoded));
            }
            (Shape::List, Value::Array(elements)) => Value::Array(
                elements
                    .into_iter()
                    .map(|element| self.value(field.kind, element))
                    .collect::<Result<_, _>>()?,
            ),
            (Shape::Map, Value::Object(members)) => Value::Object(
                members
                    .into_iter()
                    .map(|(key, member)| Ok((key, self.value(field.kind, member)?)))
                    .collect::<Result<_, DecodeError>>()?,
            ),
            (Shape::List | Shape::Map, other) => {
                self.note_mismatch(&other, &go_type(field));
                Value::Null
            }
        };
        let is_empty = match &decoded {
            Value::Array(elements) => elements.is_empty(),
            Value::Object(members) => members.is_empty(),
            _ => true,
        };
        Ok((field.always || !is_empty).then_some(decoded))
    }

    /// Decodes one value; null gives the zero value.
    fn value(&mut self, kind: Kind, value: Value) -> Result<Value, DecodeError> {
        match (kind, value) {
            (Kind::Struct(of), value) => self.object(of, value),
            (Kind::Either(of, alternative), value) => self.either(of, alternative, value),
            (Kind::Quantity, value) => quantity(&value),
            (Kind::IntOrString, value) => self.int_or_string(value),
            (Kind::Time, value) => self.time(&value, go_time::canonical),
            (Kind::MicroTime, value) => self.time(&value, go_time::canonical_micro),
            (Kind::Bytes, Value::String(text)) => base64::canonical(&text).map(Value::from),
            (Kind::Strings, value) => self.strings(value),
            (Kind::Raw | Kind::Json, value)
            | (Kind::String(_), value @ Value::String(_))
            | (Kind::Bool, value @ Value::Bool(_)) => Ok(value),
            (Kind::Int32, Value::Number(number)) if fits_i32(&number) => Ok(number.into()),
            (Kind::Int64, Value::Number(number)) if number.is_i64() => Ok(number.into()),
            (Kind::Float, Value::Number(number)) => Ok(whole(&number).unwrap_or(number).into()),
            (kind, Value::Null) => Ok(zero_value(kind)),
            (kind, other) => {
                self.note_mismatch(&other, go_scalar(kind));
                Ok(zero_value(kind))
            }
        }
    }

    /// Decodes an object or its alternative. An error in it comes before all others.
    fn either(
        &mut self,
        of: TypeName<'_>,
        alternative: Alternative,
        value: Value,
    ) -> Result<Value, DecodeError> {
        let before = self.mismatch.take();
        let outer = self.outer;
        self.outer = outer.or(Some(self.holder));
        let decoded = match (alternative, value) {
            (_, value @ Value::Object(_)) => self.object(of, value)?,
            (Alternative::Bool, value @ Value::Bool(_)) => value,
            (Alternative::Bool, _) => return Err(DecodeError::NeitherBoolNorSchema),
            (Alternative::List, Value::Array(elements)) if !elements.is_empty() => elements
                .into_iter()
                .map(|element| self.object(of, element))
                .collect::<Result<_, _>>()?,
            (Alternative::Strings, Value::Array(elements)) if !elements.is_empty() => elements
                .into_iter()
                .map(|element| self.value(Kind::String("string"), element))
                .collect::<Result<_, _>>()?,
            _ => Value::Null,
        };
        self.outer = outer;
        match std::mem::replace(&mut self.mismatch, before) {
            Some(mismatch) => Err(mismatch),
            None => Ok(decoded),
        }
    }

    fn int_or_string(&mut self, value: Value) -> Result<Value, DecodeError> {
        match value {
            Value::String(_) => Ok(value),
            Value::Null => Ok(Value::from(0)),
            Value::Number(number) if fits_i32(&number) => Ok(number.into()),
            other => Err(self.mismatch_error(&other, "int32")),
        }
    }

    /// Returns the time in Go's format; the zero time is null.
    fn time(
        &mut self,
        value: &Value,
        canonical: impl Fn(&str) -> Result<Option<String>, String>,
    ) -> Result<Value, DecodeError> {
        match value {
            Value::Null => Ok(Value::Null),
            Value::String(text) => {
                let time = canonical(text).map_err(DecodeError::Time)?;
                Ok(time.map_or(Value::Null, Value::String))
            }
            other => Err(self.mismatch_error(other, "string")),
        }
    }

    fn strings(&mut self, value: Value) -> Result<Value, DecodeError> {
        match value {
            Value::Array(elements) => elements
                .into_iter()
                .map(|element| self.value(Kind::String("string"), element))
                .collect(),
            Value::Null => Ok(Value::Null),
            other => {
                self.note_mismatch(&other, "v1.ExtraValue");
                Ok(Value::Null)
            }
        }
    }

    fn note_mismatch(&mut self, found: &Value, go_type: &str) {
        if self.mismatch.is_none() {
            self.mismatch = Some(self.mismatch_error(found, go_type));
        }
    }

    fn mismatch_error(&self, found: &Value, go_type: &str) -> DecodeError {
        let value = match found {
            Value::Null => String::from("null"),
            Value::Bool(_) => String::from("bool"),
            Value::String(_) => String::from("string"),
            Value::Array(_) => String::from("array"),
            Value::Object(_) => String::from("object"),
            Value::Number(number) if go_type.starts_with("int") => {
                format!("number {}", literal(number))
            }
            Value::Number(_) => String::from("number"),
        };
        let target = if self.path.is_empty() {
            String::from("value")
        } else {
            let holder = self.outer.unwrap_or(self.holder);
            format!("struct field {holder}.{}", self.path.join("."))
        };
        DecodeError::Mismatch {
            value,
            target,
            go_type: go_type.to_owned(),
        }
    }
}

/// Returns the Go struct that contains `path` in a stateful set.
fn holder_in_set(path: &str) -> &'static str {
    let (parents, _) = path.rsplit_once('.').unwrap_or(("", path));
    let mut names = parents.split('.').filter(|name| !name.is_empty());
    let set = TypeName::from("StatefulSet");
    let holder = names.try_fold(set, |holder, name| match holder.find()?.field(name)?.kind {
        Kind::Struct(inner) => Some(inner),
        _ => None,
    });
    holder.unwrap_or(set).name
}

/// Returns Go's encoding of an absent field that is always written.
fn zero(field: &Field) -> Value {
    match (field.shape, field.kind) {
        (Shape::Pointer | Shape::List | Shape::Map, _) => Value::Null,
        (Shape::Plain, Kind::Struct(of)) => {
            let fields = of.find().map_or(&[][..], |found| &found.fields);
            let always = fields.iter().filter(|field| field.always);
            Value::Object(
                always
                    .map(|field| (field.name.to_owned(), zero(field)))
                    .collect(),
            )
        }
        (Shape::Plain, kind) => zero_value(kind),
    }
}

/// Returns the zero value of a non-object type.
fn zero_value(kind: Kind) -> Value {
    match kind {
        Kind::String(_) | Kind::Bytes => Value::from(""),
        Kind::Int32 | Kind::Int64 | Kind::IntOrString | Kind::Float => Value::from(0),
        Kind::Bool => Value::from(false),
        Kind::Quantity => Value::from("0"),
        Kind::Time
        | Kind::MicroTime
        | Kind::Raw
        | Kind::Json
        | Kind::Strings
        | Kind::Struct(_)
        | Kind::Either(..) => Value::Null,
    }
}

/// Returns true if Go omits a plain field with this value; it never omits an object.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn quantity(value: &Value) -> Result<Value, DecodeError> {
    let text = match value {
        Value::Null => return Ok(Value::from("0")),
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => literal(number),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            return Err(QuantityError::Format.into());
        }
    };
    Ok(Value::from(Quantity::from_str(&text)?.to_string()))
}

fn fits_i32(number: &Number) -> bool {
    number
        .as_i64()
        .is_some_and(|number| i32::try_from(number).is_ok())
}

/// Returns the digits of a number in the input, as far as they are known.
fn literal(number: &Number) -> String {
    let is_small = |double: f64| double.abs() < 1e19;
    if number.as_f64().is_some_and(is_small) {
        number.to_string()
    } else {
        go_number(number)
    }
}

/// Returns the Go type of a non-object type.
fn go_scalar(kind: Kind) -> &'static str {
    match kind {
        Kind::String(go_type) => go_type,
        Kind::Int32 => "int32",
        Kind::Int64 => "int64",
        Kind::Bool => "bool",
        Kind::Quantity => "resource.Quantity",
        Kind::IntOrString => "intstr.IntOrString",
        Kind::Time => "v1.Time",
        Kind::MicroTime => "v1.MicroTime",
        Kind::Bytes => "[]uint8",
        Kind::Raw => "v1.FieldsV1",
        Kind::Json => "v1.JSON",
        Kind::Strings => "v1.ExtraValue",
        Kind::Float => "float64",
        Kind::Struct(of) | Kind::Either(of, _) => go_name(of.name),
    }
}

/// Returns the Go type of objects.
fn go_struct(of: TypeName<'_>) -> String {
    of.find().map(Type::go_type).unwrap_or_default()
}

/// Returns the integer that a number is equal to.
#[expect(
    clippy::cast_possible_truncation,
    reason = "only whole numbers in range pass"
)]
fn whole(number: &Number) -> Option<Number> {
    let value = number.as_f64().filter(|_| number.is_f64())?;
    let is_whole = value.fract() == 0.0 && value.abs() < 9e18;
    is_whole.then(|| Number::from(value as i64))
}

/// Returns the Go type of a list or a map.
fn go_type(field: &Field) -> String {
    match (field.shape, field.kind) {
        (Shape::Map, _) if field.name == "definitions" => String::from("v1.JSONSchemaDefinitions"),
        (Shape::Map, Kind::Either(..)) => String::from("v1.JSONSchemaDependencies"),
        (Shape::List, Kind::Struct(of)) if of.name == "ValidationRule" => {
            String::from("v1.ValidationRules")
        }
        (Shape::Map, Kind::Quantity) => String::from("v1.ResourceList"),
        (Shape::Map, Kind::String("string")) => String::from("map[string]string"),
        (Shape::Map, Kind::String(_)) => {
            format!("map[v1.ResourceName]{}", go_scalar(field.kind))
        }
        (Shape::Map, Kind::Struct(of)) => {
            let key = match of.name {
                "DeviceAttribute" | "DeviceCapacity" => "v1.QualifiedName",
                "NodeAllocatableResourceMapping" => "v1.ResourceName",
                _ => "string",
            };
            format!("map[{key}]{}", go_struct(of))
        }
        (Shape::Map, kind) => format!("map[string]{}", go_scalar(kind)),
        (_, Kind::Struct(of)) => format!("[]{}", go_struct(of)),
        (_, kind) => format!("[]{}", go_scalar(kind)),
    }
}
