//! Text of the actions that name controllers: `controller(..)`, `dec_ttl(ID,..)`; and of bytes.

use super::TextError;
use super::lex::{Piece, pairs};
use super::value::unsigned;
use crate::action::Action;
use crate::id::MeterId;
use crate::packet_in_reason::PacketInReason;
use crate::to_controller::ToController;

/// Bytes of the shortest note, and of what each longer one has more.
const NOTE_LEN_MIN: usize = 6;
const NOTE_UNIT: usize = 8;

/// `controller(max_len=N,reason=WORD,id=N,userdata=HEX,pause,meter_id=N)` or `controller:N`,
/// without the word.
pub(crate) fn parse(piece: Piece<'_>) -> Result<Action, TextError> {
    let mut asked = ToController::default();
    if !piece.text.is_empty() && piece.text.bytes().all(|byte| byte.is_ascii_digit()) {
        asked.max_len = unsigned(piece)?;
        return Ok(asked.into_action());
    }
    let (mut max_len, mut reason, mut id) = (None, None, None);
    let (mut userdata, mut meter) = (None, None);
    for pair in pairs(piece) {
        let pair = pair?;
        match pair.key.text {
            "max_len" => pair.once(&mut max_len, unsigned)?,
            "reason" => pair.once(&mut reason, parse_reason)?,
            "id" => pair.once(&mut id, unsigned)?,
            "userdata" => pair.once(&mut userdata, hex)?,
            "meter_id" => pair.once(&mut meter, unsigned::<u32>)?,
            "pause" if asked.pauses => return Err(pair.twice()),
            "pause" => {
                pair.alone()?;
                asked.pauses = true;
            }
            word => {
                let known = "max_len, reason, id, userdata, pause, meter_id";
                return Err(pair.key.error(format!("`{word}` is not known here: {known}")));
            }
        }
    }
    let default = ToController::default();
    asked.max_len = max_len.unwrap_or(default.max_len);
    asked.reason = reason.unwrap_or(default.reason);
    asked.controller_id = id.unwrap_or_default();
    asked.userdata = userdata.unwrap_or_default();
    asked.meter = meter.filter(|meter| *meter != 0).map(MeterId);
    Ok(asked.into_action())
}

fn parse_reason(piece: Piece<'_>) -> Result<PacketInReason, TextError> {
    let known = PacketInReason::ALL.iter().find(|reason| reason.text() == piece.text);
    known.copied().ok_or_else(|| {
        let words: Vec<&str> = PacketInReason::ALL.iter().map(|reason| reason.text()).collect();
        piece.error(format!("`{}` is no reason: {}", piece.text, words.join(", ")))
    })
}

/// The arguments that differ from the defaults, in parentheses; as an output where none but the
/// length does.
pub(super) fn text(asked: &ToController) -> String {
    let default = ToController::default();
    if *asked == (ToController { max_len: asked.max_len, ..default.clone() }) {
        return format!("CONTROLLER:{}", asked.max_len);
    }
    let mut words = Vec::new();
    let reason = asked.reason;
    if reason != default.reason {
        let is_known = PacketInReason::ALL.contains(&reason);
        let number = || reason.number().to_string();
        let word = if is_known { reason.text().to_owned() } else { number() };
        words.push(format!("reason={word}"));
    }
    if asked.max_len != default.max_len {
        words.push(format!("max_len={}", asked.max_len));
    }
    if asked.controller_id != 0 {
        words.push(format!("id={}", asked.controller_id));
    }
    if !asked.userdata.is_empty() {
        words.push(format!("userdata={}", dotted(&asked.userdata)));
    }
    if asked.pauses {
        words.push("pause".to_owned());
    }
    if let Some(meter) = asked.meter {
        words.push(format!("meter_id={}", meter.0));
    }
    format!("controller({})", words.join(","))
}

/// Of the plain action's numbers, or of the text that [`text`] has made.
pub(crate) fn format(words: &[String]) -> String {
    let [max_len, controller_id, reason] = words else {
        // Of a list of all actions.
        let is_name = |word: &&String| *word == "CONTROLLER";
        let form = "controller(userdata=HEX,pause,meter_id=N)";
        return words.first().filter(|word| !is_name(word)).map_or(form, |word| word).to_owned();
    };
    if let (Ok(max_len), Ok(controller_id), Ok(reason)) =
        (max_len.parse(), controller_id.parse(), reason.parse())
    {
        let reason = PacketInReason::from_number(reason);
        return text(&ToController { max_len, controller_id, reason, ..ToController::default() });
    }
    "controller(reason=REASON,max_len=N,id=N)".to_owned()
}

/// The controllers of `dec_ttl(ID,..)`.
pub(super) fn controller_ids(piece: Piece<'_>) -> Result<Vec<u16>, TextError> {
    let mut ids = Vec::new();
    let mut rest = Some(piece);
    while let Some(left) = rest.take() {
        let (id, more) = match left.split_once(",") {
            Some((id, more)) => (id, Some(more)),
            None => (left, None),
        };
        ids.push(unsigned(id.trimmed())?);
        rest = more;
    }
    Ok(ids)
}

/// The bytes of `note:HEX`, filled up with zeros to the length that an action has room for.
pub(super) fn note(piece: Piece<'_>) -> Result<Vec<u8>, TextError> {
    let mut bytes = hex(piece)?;
    let beyond = bytes.len().saturating_sub(NOTE_LEN_MIN).next_multiple_of(NOTE_UNIT);
    bytes.resize(NOTE_LEN_MIN + beyond, 0);
    Ok(bytes)
}

/// Bytes as pairs of hexadecimal digits, with dots or blanks between them or without.
fn hex(piece: Piece<'_>) -> Result<Vec<u8>, TextError> {
    let is_between = |c: char| c == '.' || c.is_whitespace();
    let mut bytes = Vec::new();
    let mut rest = piece.text.trim_start_matches(is_between);
    while !rest.is_empty() {
        let digits = rest.get(..2).filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok()).ok_or_else(|| {
            let at = piece.at + piece.text.len() - rest.len();
            piece.part(rest, at).error("bytes are pairs of hexadecimal digits: 01.0a.ff")
        })?;
        bytes.push(byte);
        rest = rest.get(2..).unwrap_or_default().trim_start_matches(is_between);
    }
    Ok(bytes)
}

/// Bytes in hexadecimal digits, with dots between them.
pub(super) fn dotted(bytes: &[u8]) -> String {
    let words: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    words.join(".")
}

#[cfg(test)]
mod tests {
    use crate::action::Action;
    use crate::packet_in_reason::PacketInReason;
    use crate::text::{format_actions, parse_actions};
    use crate::to_controller::ToController;

    #[test]
    fn a_length_alone_is_printed_as_that_of_an_output() {
        let asked = ToController { max_len: 64, ..ToController::default() };
        let plain =
            Action::Controller { max_len: 64, controller_id: 0, reason: PacketInReason::Action };
        for action in [plain, Action::ControllerProperties(Box::new(asked))] {
            let text = format_actions(&[action]);
            assert_eq!(text, "CONTROLLER:64");
            assert_eq!(format_actions(&parse_actions(&text).unwrap()), text);
        }
    }
}
