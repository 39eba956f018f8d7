//! Actions and instructions by Ryu's names and keys, both ways.
//!
//! A body lists actions and, between them, what are instructions in 1.3 (`GOTO_TABLE`,
//! `WRITE_METADATA`, `METER`, `WRITE_ACTIONS`, `CLEAR_ACTIONS`). Ryu left out an action that it did
//! not know and made up an argument that was missing; both are refused here. Names and keys are
//! those of the rows, and an argument is read and printed by its type, so that a new action needs
//! nothing here.

use super::matching::{field_value, old_name, single};
use crate::problem::Problem;
use crate::shape::{Fields, Key, Of, Reserved, Shape, key};
use crate::words;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openflow::action::{
    ACTIONS, ArgumentKey, ArgumentType, CLONES_DEEP_MAX, ReadArguments, WriteArguments,
};
use openflow::field::{ALL_FIELDS, FieldRow};
use openflow::instruction::{ActionsRun, INSTRUCTIONS};
use openflow::text::{format_actions, parse_actions, unpresent_vid};
use openflow::{
    Action, ActionKind, Field, Instruction, InstructionKind, Learn, MacAddr, Members, PortNo,
    ToController, Version,
};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::LazyLock;

/// Shapes of objects, found by their key `type`.
type Shapes = LazyLock<Vec<&'static Shape>>;

/// Actions that a group's bucket may have.
pub(crate) static BUCKET_ACTIONS: Shapes = LazyLock::new(|| {
    // Actions of one name are those of different versions, with the same keys.
    let named = |index: usize, name: &str| ACTIONS[..index].iter().any(|row| row.ryu == name);
    let all = ACTIONS.iter().enumerate().filter(|(index, row)| !named(*index, row.ryu));
    all.map(|(_, row)| shape(row.ryu, (row.doc, row.argument_docs), row.keys, row.arguments))
        .collect()
});

/// Instructions that Ryu has a name for.
pub(crate) static NAMED_INSTRUCTIONS: Shapes = LazyLock::new(|| {
    let named = INSTRUCTIONS.iter().filter(|row| !row.ryu.is_empty());
    named.map(|row| shape(row.ryu, (row.doc, row.argument_docs), row.keys, row.arguments)).collect()
});

/// Members of the list of actions of a flow entry: actions, and instructions but for apply-actions.
pub(crate) static FLOW_ACTIONS: Shapes = LazyLock::new(|| {
    let others = NAMED_INSTRUCTIONS.iter().filter(|shape| {
        let kind = instruction_kind(shape.name);
        kind.is_some_and(|kind| kind.row().actions != ActionsRun::AtOnce)
    });
    BUCKET_ACTIONS.iter().chain(others).copied().collect()
});

/// The shape of an action or instruction; made once for each, and never freed.
fn shape(
    name: &'static str,
    (doc, argument_docs): (&'static str, &[&'static str]),
    keys: &'static [ArgumentKey],
    types: &'static [ArgumentType],
) -> &'static Shape {
    let mut all = vec![Key { name: "type", of: Of::Text, required: true, what: doc.trim_start() }];
    for (index, (argument, ty)) in keys.iter().zip(types).enumerate() {
        let what = argument_docs.get(index).unwrap_or(&doc).trim_start();
        // Links of the documentation are words here.
        let what = what.replace("[`", "`").replace("`]", "`").leak();
        let required = argument.default.is_none();
        all.push(Key { name: argument.name, of: form(*ty, argument.name), required, what });
        if *ty == ArgumentType::Bytes {
            all.push(key("data_type", Of::Word(&["ascii", "base64"]), "form of the data"));
        }
    }
    Box::leak(Box::new(Shape { name, what: name, keys: all.leak() }))
}

/// The form of an argument in a body.
fn form(ty: ArgumentType, key: &str) -> Of {
    let number = |bits| match reserved(key) {
        Some(names) => Of::Named(bits, names),
        None => Of::Number(bits),
    };
    match ty {
        ArgumentType::U8 => number(8),
        ArgumentType::U16 | ArgumentType::ShortPort => number(16),
        ArgumentType::U32 => number(32),
        ArgumentType::U64 => number(64),
        ArgumentType::Port => Of::Named(32, &words::PORTS),
        ArgumentType::Mac
        | ArgumentType::Ipv4
        | ArgumentType::Field
        | ArgumentType::Bytes
        | ArgumentType::Learn
        | ArgumentType::Bundle
        | ArgumentType::ToController
        | ArgumentType::ControllerIds => Of::Text,
        ArgumentType::Value => Of::Scalar,
        ArgumentType::Actions => Of::Typed(|| &BUCKET_ACTIONS),
    }
}

/// The names of reserved numbers that a key may have.
fn reserved(key: &str) -> Option<&'static Reserved> {
    match key {
        "max_len" => Some(&words::MAX_LENS),
        "queue_id" => Some(&words::QUEUES),
        "group_id" => Some(&words::GROUPS),
        "meter_id" => Some(&words::METERS),
        "table_id" => Some(&words::TABLES),
        _ => None,
    }
}

/// The action of this name, that of the version where several have it.
fn action_kind(name: &str, version: Version) -> Option<ActionKind> {
    let named = || ACTIONS.iter().filter(|row| row.ryu == name).map(|row| row.kind);
    named().find(|kind| kind.is_in(version)).or_else(|| named().next())
}

fn instruction_kind(name: &str) -> Option<InstructionKind> {
    INSTRUCTIONS.iter().find(|row| row.ryu == name).map(|row| row.kind)
}

/// Whether a version has an action or instruction of this type.
fn is_in(version: Version, name: &str) -> bool {
    action_kind(name, version).is_some_and(|kind| kind.is_in(version))
        || instruction_kind(name).is_some_and(|kind| kind.is_in(version))
}

/// The instructions of the keys `actions` and `instructions` of a flow entry's body.
///
/// # Errors
/// When an action is unknown, not of the version, or wrong.
pub(crate) fn instructions(
    fields: &Fields<'_>,
    version: Version,
) -> Result<Vec<Instruction>, Problem> {
    let named = fields.list("instructions")?;
    if !named.is_empty() {
        if fields.get("actions").is_some() {
            let words = "a flow entry is given by `actions` or by `instructions`";
            return Err(fields.problem("instructions", words));
        }
        if !version.has_instructions() {
            return Err(Problem::not_in(version, "instructions").at(fields.path("instructions")));
        }
        let one = |(place, value): &(String, &Value)| {
            let fields = Fields::typed(value, &NAMED_INSTRUCTIONS, place)?;
            let kind = instruction_kind(fields.name());
            let kind = kind.ok_or_else(|| Problem::bad("no instruction").at(place))?;
            instruction(kind, &fields, version)
        };
        return named.iter().map(one).collect();
    }
    let (mut instructions, mut actions) = (Vec::new(), Vec::new());
    for (place, value) in fields.list("actions")? {
        let fields = Fields::typed(value, &FLOW_ACTIONS, &place)?;
        check_version(&fields, version)?;
        let Some(kind) = instruction_kind(fields.name()) else {
            actions.push(action(&fields, version)?);
            continue;
        };
        let instruction = instruction(kind, &fields, version)?;
        // Ryu leaves an empty list out, which comes to the same.
        let is_empty = kind.row().actions == ActionsRun::InSet && instruction.actions().is_empty();
        instructions.extend((!is_empty).then_some(instruction));
    }
    if !actions.is_empty() {
        instructions.push(Instruction::ApplyActions(actions));
    }
    Ok(instructions)
}

fn check_version(fields: &Fields<'_>, version: Version) -> Result<(), Problem> {
    if is_in(version, fields.name()) {
        return Ok(());
    }
    let words = format!("{version} has no {}", fields.name());
    let types = FLOW_ACTIONS.iter().map(|shape| shape.name).filter(|name| is_in(version, name));
    Err(fields.problem("type", words).allowing(types))
}

/// The actions of the key `actions`, without instructions.
///
/// # Errors
/// As [`instructions`].
pub(crate) fn applied(fields: &Fields<'_>, version: Version) -> Result<Vec<Action>, Problem> {
    let list = fields.list("actions")?;
    let one = |(place, value): (String, &Value)| {
        let fields = Fields::typed(value, &BUCKET_ACTIONS, &place)?;
        check_version(&fields, version)?;
        action(&fields, version)
    };
    list.into_iter().map(one).collect()
}

fn action(fields: &Fields<'_>, version: Version) -> Result<Action, Problem> {
    let name = fields.name();
    let kind = action_kind(name, version)
        .ok_or_else(|| fields.problem("type", format!("{name} is no action")))?;
    let mut arguments = Reading { fields, version, keys: kind.row().keys.iter(), field: None };
    let action = Action::read(kind, &mut arguments)?;
    if action.clones_deep() > CLONES_DEEP_MAX {
        let words = format!("at most {CLONES_DEEP_MAX} clones lie in each other");
        return Err(fields.problem("actions", words));
    }
    Ok(action)
}

fn instruction(
    kind: InstructionKind,
    fields: &Fields<'_>,
    version: Version,
) -> Result<Instruction, Problem> {
    let keys = kind.row().keys.iter();
    Instruction::read(kind, &mut Reading { fields, version, keys, field: None })
}

/// Reads arguments from the keys of a body.
struct Reading<'a> {
    fields: &'a Fields<'a>,
    version: Version,
    /// Keys of the arguments that are left.
    keys: std::slice::Iter<'static, ArgumentKey>,
    field: Option<Field>,
}

impl<'a> Reading<'a> {
    fn key(&mut self) -> ArgumentKey {
        *self.keys.next().expect("every argument has a key")
    }

    fn text(&mut self) -> Result<(&'static str, &'a str), Problem> {
        let name = self.key().name;
        Ok((name, self.fields.text(name)?.unwrap_or_default()))
    }
}

impl ReadArguments for Reading<'_> {
    type Error = Problem;

    fn number(&mut self, bits: u16) -> Result<u64, Problem> {
        let key = self.key();
        let number = match reserved(key.name) {
            Some(names) => self.fields.named(key.name, names)?.map(u64::from),
            None => self.fields.number(key.name)?,
        };
        let number = number.or(key.default).unwrap_or_default();
        if number > u64::MAX >> (64 - bits) {
            return Err(self.fields.problem(key.name, format!("{number} is too large")));
        }
        Ok(number)
    }

    fn port(&mut self) -> Result<PortNo, Problem> {
        let key = self.key();
        words::port_of(self.fields, key.name, self.version).map(Option::unwrap_or_default)
    }

    fn mac(&mut self) -> Result<MacAddr, Problem> {
        let (key, text) = self.text()?;
        text.parse().map_err(|error| self.fields.problem(key, format!("`{text}` is {error}")))
    }

    fn ipv4(&mut self) -> Result<Ipv4Addr, Problem> {
        let (key, text) = self.text()?;
        let no_address = |_| self.fields.problem(key, format!("`{text}` is not an IPv4 address"));
        text.parse().map_err(no_address)
    }

    fn field(&mut self) -> Result<Field, Problem> {
        let (key, name) = self.text()?;
        let settable = |row: &&FieldRow| row.settable;
        let row = ALL_FIELDS.iter().filter(settable).find(|row| row.name == name);
        let row = row.ok_or_else(|| {
            let all = || ALL_FIELDS.iter().filter(settable);
            let meant = all().filter(|row| old_name(row.field) == Some(name));
            let mut names: Vec<_> = meant.map(|row| row.name).collect();
            let mut words = format!("no field `{name}` can be set");
            match names[..] {
                [] => names = all().map(|row| row.name).collect(),
                [_] => words += ": it has another name",
                [..] => words += ": each protocol's has a name of its own",
            }
            self.fields.problem(key, words).allowing(names)
        })?;
        self.field = Some(row.field);
        Ok(row.field)
    }

    fn value(&mut self) -> Result<u128, Problem> {
        let key = self.key().name;
        let (Some(value), Some(field)) = (self.fields.get(key), self.field) else {
            return Err(self.fields.problem(key, "a value is missing"));
        };
        let read = field_value(self.version, field, value);
        let (bits, mask) = read.map_err(|problem| problem.at(self.fields.path(key)))?;
        if mask != field.full_mask() {
            return Err(self.fields.problem(key, "set-field takes no mask"));
        }
        if let Some(why) = unpresent_vid(field, bits, mask) {
            return Err(self.fields.problem(key, why));
        }
        Ok(bits)
    }

    /// The text of `ovs-ofctl` in its parentheses.
    fn to_controller(&mut self) -> Result<ToController, Problem> {
        let (key, inner) = self.text()?;
        let read = parse_actions(&format!("controller({inner})"));
        let read = read.map_err(|error| self.fields.problem(key, error.what))?;
        let asked = match &read[..] {
            // Text without more than a length is that of an output.
            &[Action::Output { max_len, .. }] => {
                Some(ToController { max_len, ..ToController::default() })
            }
            [action] => action.to_controller(),
            [..] => None,
        };
        asked.ok_or_else(|| self.fields.problem(key, "the words of one action were expected"))
    }

    /// Numbers with commas between them.
    fn controller_ids(&mut self) -> Result<Vec<u16>, Problem> {
        let (key, text) = self.text()?;
        let ids: Result<Vec<u16>, _> = text.split(',').map(|id| id.trim().parse()).collect();
        ids.map_err(|_| self.fields.problem(key, format!("`{text}` are no numbers of controllers")))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Problem> {
        data(self.fields)
    }

    /// The text of `ovs-ofctl`.
    fn learn(&mut self) -> Result<Learn, Problem> {
        let (key, inner) = self.text()?;
        let read = parse_actions(&format!("learn({inner})"));
        match &read.map_err(|error| self.fields.problem(key, error.what))?[..] {
            [Action::Learn(learn)] => Ok((**learn).clone()),
            [..] => Err(self.fields.problem(key, "one learn action was expected")),
        }
    }

    /// The text of `ovs-ofctl`, of an action of this name.
    fn members(&mut self) -> Result<Members, Problem> {
        let (key, inner) = self.text()?;
        let word = action_kind(self.fields.name(), self.version).map_or("", |kind| kind.row().text);
        let read = parse_actions(&format!("{word}({inner})"));
        let read = read.map_err(|error| self.fields.problem(key, error.what))?;
        let bundle = match &read[..] {
            [action] => action.members().cloned(),
            [..] => None,
        };
        bundle.ok_or_else(|| self.fields.problem(key, "one bundle was expected"))
    }

    fn actions(&mut self) -> Result<Vec<Action>, Problem> {
        applied(self.fields, self.version)
    }
}

/// The body of an experimenter's action or message.
///
/// # Errors
/// When it is not of the form that `data_type` names.
pub(crate) fn data(fields: &Fields<'_>) -> Result<Vec<u8>, Problem> {
    let text = fields.text("data")?.unwrap_or_default();
    match fields.word("data_type")? {
        Some("base64") => {
            let decoded = STANDARD.decode(text);
            decoded.map_err(|error| fields.problem("data", format!("not base64: {error}")))
        }
        Some(_) | None if text.is_ascii() => Ok(text.as_bytes().to_vec()),
        Some(_) | None => {
            Err(fields.problem("data", "not ASCII; other bytes are given by data_type base64"))
        }
    }
}

/// Instructions as Ryu prints them: strings, and an object for those of the action set.
pub(crate) fn to_values(version: Version, instructions: &[Instruction]) -> Vec<Value> {
    let mut values = Vec::new();
    for instruction in instructions {
        let row = instruction.kind().row();
        let texts =
            || instruction.actions().iter().map(|action| Value::from(to_text(version, action)));
        match row.actions {
            ActionsRun::AtOnce => values.extend(texts()),
            ActionsRun::InSet if instruction.actions().is_empty() => {}
            ActionsRun::InSet => values.push(json!({ row.ryu: texts().collect::<Vec<_>>() })),
            ActionsRun::Never if row.ryu.is_empty() => values.push("UNKNOWN".into()),
            ActionsRun::Never => {
                let text = printed(version, row.ryu, row.keys, |words| instruction.write(words));
                values.push(text.into());
            }
        }
    }
    values
}

/// An action as Ryu prints it.
pub(crate) fn to_text(version: Version, action: &Action) -> String {
    let row = action.kind().row();
    if row.kind == ActionKind::Experimenter && !version.has_instructions() {
        return "VENDOR".to_owned();
    }
    printed(version, row.ryu, row.keys, |words| action.write(words))
}

/// A name with its arguments: `ENQUEUE:1:2`, or `SET_FIELD: {eth_src:..}` where one is a field or
/// bytes.
fn printed(
    version: Version,
    name: &str,
    keys: &'static [ArgumentKey],
    write: impl FnOnce(&mut Printing) -> Result<(), Infallible>,
) -> String {
    let mut printing = Printing { version, keys: keys.iter(), words: Vec::new(), is_object: false };
    match write(&mut printing) {
        Ok(()) => {}
        Err(never) => match never {},
    }
    let words = printing.words;
    if printing.is_object {
        let members: Vec<_> = words.iter().map(|(key, word)| format!("{key}:{word}")).collect();
        return format!("{name}: {{{}}}", members.join(", "));
    }
    words.iter().fold(name.to_owned(), |text, (_, word)| format!("{text}:{word}"))
}

/// The arguments of an action or instruction in words, with their keys.
struct Printing {
    version: Version,
    keys: std::slice::Iter<'static, ArgumentKey>,
    words: Vec<(&'static str, String)>,
    /// Whether keys are printed too.
    is_object: bool,
}

impl Printing {
    fn push(&mut self, word: impl ToString) -> Result<(), Infallible> {
        let key = self.keys.next().expect("every argument has a key");
        self.words.push((key.name, word.to_string()));
        Ok(())
    }
}

impl WriteArguments for Printing {
    type Error = Infallible;

    /// A number, or the name of a reserved one. Ryu leaves out those with a default.
    fn number(&mut self, number: u64, _bits: u16) -> Result<(), Infallible> {
        let Some(ArgumentKey { name, default: None }) = self.keys.as_slice().first() else {
            self.keys.next();
            return Ok(());
        };
        match reserved(name) {
            Some(names) => {
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                self.push(words::plain(&names.value(number)))
            }
            None => self.push(number),
        }
    }

    /// In hexadecimal digits. The second is the first one's mask, unless that is zero.
    fn u64(&mut self, number: u64) -> Result<(), Infallible> {
        match self.words.last_mut() {
            Some(_) if number == 0 => {}
            Some((_, word)) => *word = format!("{word}/{number:#x}"),
            None => self.push(format!("{number:#x}"))?,
        }
        Ok(())
    }

    fn port(&mut self, port: PortNo) -> Result<(), Infallible> {
        self.push(words::plain(&words::port_value(self.version, port)))
    }

    fn mac(&mut self, mac: MacAddr) -> Result<(), Infallible> {
        self.push(mac)
    }

    fn ipv4(&mut self, address: Ipv4Addr) -> Result<(), Infallible> {
        self.push(address)
    }

    fn field(&mut self, field: Field) -> Result<(), Infallible> {
        self.is_object = true;
        self.push(field.row().name)
    }

    /// The field itself is the key.
    fn value(&mut self, value: u128) -> Result<(), Infallible> {
        let field = self.words.pop().and_then(|(_, name)| Field::from_name(&name));
        let field = field.expect("a value follows its field");
        self.words.push((field.row().name, words::plain(&single(field, value))));
        Ok(())
    }

    fn to_controller(&mut self, asked: &ToController) -> Result<(), Infallible> {
        self.is_object = true;
        let text = format_actions(&[Action::ControllerProperties(Box::new(asked.clone()))]);
        let inner = text.strip_prefix("controller(").and_then(|text| text.strip_suffix(')'));
        // Without any other word it is the text of an output.
        self.push(inner.map_or_else(|| format!("max_len={}", asked.max_len), str::to_owned))
    }

    fn controller_ids(&mut self, ids: &[u16]) -> Result<(), Infallible> {
        let ids: Vec<String> = ids.iter().map(u16::to_string).collect();
        self.is_object = true;
        self.push(ids.join(","))
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.is_object = true;
        self.push(STANDARD.encode(bytes))
    }

    fn learn(&mut self, learn: &Learn) -> Result<(), Infallible> {
        self.is_object = true;
        let text = format_actions(&[Action::Learn(Box::new(learn.clone()))]);
        let inner = text.strip_prefix("learn(").and_then(|text| text.strip_suffix(')'));
        self.push(inner.unwrap_or(&text))
    }

    fn members(&mut self, bundle: &Members) -> Result<(), Infallible> {
        self.is_object = true;
        let text = format_actions(&[Action::Bundle(Box::new(bundle.clone()))]);
        let inner = text.strip_prefix("bundle(").and_then(|text| text.strip_suffix(')'));
        self.push(inner.unwrap_or(&text))
    }

    fn actions(&mut self, actions: &[Action]) -> Result<(), Infallible> {
        let texts: Vec<_> = actions.iter().map(|action| to_text(self.version, action)).collect();
        self.push(texts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::{FLOW_ACTIONS, instructions, is_in, to_values};
    use crate::shape::{Fields, Of, Shape, key};
    use openflow::Version;
    use serde_json::{Value, json};

    static FLOW: Shape = Shape {
        name: "flow",
        what: "a flow entry",
        keys: &[
            key("actions", Of::Typed(|| &FLOW_ACTIONS), "its actions"),
            key("instructions", Of::Typed(|| &super::NAMED_INSTRUCTIONS), "its instructions"),
        ],
    };

    fn printed(version: Version, body: &Value) -> Result<Vec<Value>, String> {
        let fields = Fields::of(body, &FLOW, "").unwrap();
        let read = instructions(&fields, version);
        read.map(|it| to_values(version, &it)).map_err(|problem| problem.to_value().to_string())
    }

    #[test]
    fn actions_of_1_3_come_back_as_ryu_prints_them() {
        let body = json!({"actions": [
            {"type": "OUTPUT", "port": "CONTROLLER", "max_len": "NO_BUFFER"},
            {"type": "SET_FIELD", "field": "eth_src", "value": "02:00:00:00:00:01"},
            {"type": "SET_FIELD", "field": "vlan_vid", "value": 4101},
            {"type": "PUSH_VLAN", "ethertype": 33024}, {"type": "SET_QUEUE", "queue_id": 7},
            {"type": "GROUP", "group_id": 1}, {"type": "DEC_NW_TTL"},
            {"type": "WRITE_METADATA", "metadata": "0x5", "metadata_mask": 255},
            {"type": "METER", "meter_id": 3},
            {"type": "WRITE_ACTIONS", "actions": [{"type": "OUTPUT", "port": 2}]},
            {"type": "CLEAR_ACTIONS"}, {"type": "GOTO_TABLE", "table_id": 1},
            {"type": "EXPERIMENTER", "experimenter": 9, "data": "YWI=", "data_type": "base64"},
        ]});
        let expected = json!([
            "WRITE_METADATA:0x5/0xff", "METER:3", {"WRITE_ACTIONS": ["OUTPUT:2"]}, "CLEAR_ACTIONS",
            "GOTO_TABLE:1", "OUTPUT:CONTROLLER", "SET_FIELD: {eth_src:02:00:00:00:00:01}",
            "SET_FIELD: {vlan_vid:4101}", "PUSH_VLAN:33024", "SET_QUEUE:7", "GROUP:1",
            "DEC_NW_TTL", "EXPERIMENTER: {experimenter:9, data:YWI=}",
        ]);
        assert_eq!(Value::from(printed(Version::V1_3, &body).unwrap()), expected);
        let metered = json!({"actions": [
            {"type": "METER", "meter_id": 3}, {"type": "OUTPUT", "port": 2},
        ]});
        let expected = json!(["METER:3", "OUTPUT:2"]);
        assert_eq!(Value::from(printed(Version::V1_5, &metered).unwrap()), expected);
    }

    #[test]
    fn actions_of_1_0_come_back_as_ryu_prints_them() {
        let body = json!({"actions": [
            {"type": "SET_VLAN_VID", "vlan_vid": 5}, {"type": "SET_VLAN_PCP", "vlan_pcp": 3},
            {"type": "STRIP_VLAN"}, {"type": "SET_DL_DST", "dl_dst": "02:00:00:00:00:01"},
            {"type": "SET_NW_SRC", "nw_src": "10.0.0.1"}, {"type": "SET_NW_TOS", "nw_tos": 8},
            {"type": "SET_TP_DST", "tp_dst": "80"}, {"type": "OUTPUT", "port": 65531},
            {"type": "ENQUEUE", "port": 1, "queue_id": 2},
        ]});
        let expected = json!([
            "SET_VLAN_VID:5",
            "SET_VLAN_PCP:3",
            "STRIP_VLAN",
            "SET_DL_DST:02:00:00:00:00:01",
            "SET_NW_SRC:10.0.0.1",
            "SET_NW_TOS:8",
            "SET_TP_DST:80",
            "OUTPUT:FLOOD",
            "ENQUEUE:1:2"
        ]);
        assert_eq!(Value::from(printed(Version::V1_0, &body).unwrap()), expected);
    }

    #[test]
    fn actions_of_controllers_keep_all_of_their_words() {
        for (words, expected) in [
            ("max_len=64", "max_len=64"),
            ("", "max_len=65535"),
            ("pause,id=2", "id=2,pause"),
            ("userdata=0102,max_len=64", "max_len=64,userdata=01.02"),
        ] {
            let body = json!({"actions": [{"type": "NX_CONTROLLER2", "controller": words}]});
            let expected = format!("NX_CONTROLLER2: {{controller:{expected}}}");
            assert_eq!(printed(Version::V1_3, &body), Ok(vec![expected.into()]));
        }
        for (name, key) in [("NX_CONTROLLER2", "controller"), ("NX_LEARN", "learn")] {
            let body = json!({"actions": [{"type": name, key: "),output(2"}]});
            let refused = printed(Version::V1_3, &body).unwrap_err();
            assert!(refused.contains("expected"), "{refused}");
        }
    }

    #[test]
    fn named_instructions_are_taken_too() {
        let body = json!({"instructions": [
            {"type": "APPLY_ACTIONS", "actions": [{"type": "OUTPUT", "port": 1}]},
            {"type": "GOTO_TABLE", "table_id": 2},
        ]});
        let expected = json!(["OUTPUT:1", "GOTO_TABLE:2"]);
        assert_eq!(Value::from(printed(Version::V1_3, &body).unwrap()), expected);
        assert!(printed(Version::V1_0, &body).unwrap_err().contains("no instructions"));
    }

    #[test]
    fn an_action_ryu_left_out_or_made_up_is_refused() {
        for (version, action, place) in [
            (Version::V1_3, json!({"type": "OUTPUTT", "port": 1}), "actions[0].type"),
            (Version::V1_3, json!({"type": "OUTPUT"}), "actions[0].port"),
            (Version::V1_3, json!({"type": "OUTPUT", "prot": 1}), "actions[0].prot"),
            (Version::V1_3, json!({"type": "STRIP_VLAN"}), "actions[0].type"),
            (Version::V1_3, json!({"type": "SET_FIELD", "field": "eth_dst", "value": 1}), "value"),
            (
                Version::V1_3,
                json!({"type": "SET_FIELD", "field": "tp_dst", "value": 80}),
                "[\"tcp_dst\",\"udp_dst\",\"sctp_dst\",\"icmpv4_code\"]",
            ),
            (Version::V1_3, json!({"type": "PUSH_VLAN"}), "ethertype"),
            (
                Version::V1_3,
                json!({"type": "EXPERIMENTER", "experimenter": 1, "data": "é"}),
                "data",
            ),
            (Version::V1_0, json!({"type": "GOTO_TABLE", "table_id": 1}), "actions[0].type"),
            (Version::V1_0, json!({"type": "SET_NW_SRC", "nw_src": "10.0.0"}), "nw_src"),
            (Version::V1_3, json!("OUTPUT:1"), "actions[0]"),
        ] {
            let words = printed(version, &json!({ "actions": [action] })).unwrap_err();
            assert!(words.contains(place), "{action}: {words}");
        }
    }

    #[test]
    fn every_type_is_of_a_version() {
        for shape in FLOW_ACTIONS.iter() {
            assert!(
                Version::ALL.iter().any(|version| is_in(*version, shape.name)),
                "{}",
                shape.name
            );
        }
    }
}
