//! Text of the actions that choose one of several: `bundle`, `bundle_load`, `multipath`.

use super::TextError;
use super::lex::Piece;
use super::subfield::{self, settable, subfield as part};
use super::value::{port, unsigned};
use crate::action::Action;
use crate::field::Field;
use crate::id::ShortPort;
use crate::members::{BundleAlgorithm, HashFields, Members, MultipathAlgorithm};
use crate::subfield::BitRange;

const BUNDLE: &str = "(FIELDS,BASIS,ALGORITHM,ofport,members:PORT,..)";
const BUNDLE_LOAD: &str = "(FIELDS,BASIS,ALGORITHM,ofport,FIELD[FIRST..LAST],members:PORT,..)";
const MULTIPATH: &str = "(FIELDS,BASIS,ALGORITHM,N_LINKS,ARG,FIELD[FIRST..LAST])";

/// The next argument, and the rest after its comma.
fn next<'a>(rest: &mut Option<Piece<'a>>, whole: Piece<'a>) -> Result<Piece<'a>, TextError> {
    let left = rest.take().ok_or_else(|| whole.error("an argument is missing here"))?;
    let (taken, more) = match left.split_once(",") {
        Some((taken, more)) => (taken, Some(more)),
        None => (left, None),
    };
    *rest = more;
    Ok(taken.trimmed())
}

fn named<T: Copy>(
    piece: Piece<'_>,
    all: &[T],
    text: impl Fn(T) -> &'static str,
) -> Result<T, TextError> {
    let known = all.iter().copied().find(|value| text(*value) == piece.text);
    known.ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(|value| text(*value)).collect();
        piece.error(format!("`{}` is not known here: {}", piece.text, words.join(", ")))
    })
}

fn hash_fields(piece: Piece<'_>) -> Result<HashFields, TextError> {
    named(piece, HashFields::ALL, HashFields::text)
}

/// `bundle(..)`, without the word.
pub(crate) fn bundle(piece: Piece<'_>) -> Result<Action, TextError> {
    Ok(Action::Bundle(Box::new(members(piece, false)?)))
}

/// `bundle_load(..)`, without the word.
pub(crate) fn bundle_load(piece: Piece<'_>) -> Result<Action, TextError> {
    Ok(Action::BundleLoad(Box::new(members(piece, true)?)))
}

fn members(piece: Piece<'_>, loads: bool) -> Result<Members, TextError> {
    let mut rest = Some(piece);
    let fields = hash_fields(next(&mut rest, piece)?)?;
    let basis = unsigned(next(&mut rest, piece)?)?;
    let algorithm = named(next(&mut rest, piece)?, BundleAlgorithm::ALL, BundleAlgorithm::text)?;
    let kind = next(&mut rest, piece)?;
    if kind.text != "ofport" {
        return Err(kind.error("the members of a bundle are ports: ofport"));
    }
    let mut dst = None;
    if loads {
        let place = next(&mut rest, piece)?;
        let (field, bits) = part(place)?;
        settable(place, field)?;
        dst = Some((bits, field));
    }
    let list = rest.unwrap_or(piece).trimmed();
    let ports = list.split_once(":").filter(|(word, _)| matches!(word.text, "members" | "slaves"));
    let (_, ports) = ports.ok_or_else(|| list.error("members:PORT,.. is expected here"))?;
    let (mut members, mut left) =
        (Vec::new(), Some(ports.trimmed()).filter(|it| !it.text.is_empty()));
    while left.is_some() {
        let place = next(&mut left, piece)?;
        let whole = port(place)?;
        let short = ShortPort::new(whole);
        let refused = || place.error(format!("port {whole} has no number of 16 bits"));
        members.push(short.ok_or_else(refused)?);
    }
    Ok(Members { fields, basis, algorithm, members, dst })
}

/// All in the parentheses.
pub(super) fn text(bundle: &Members, port: impl Fn(ShortPort) -> String) -> String {
    let members: Vec<String> = bundle.members.iter().map(|member| port(*member)).collect();
    let dst = bundle.dst.map(|(bits, field)| format!("{},", subfield::part_text(field, bits)));
    format!(
        "{},{},{},ofport,{}members:{}",
        numbered(bundle.fields.text(), bundle.fields.number()),
        bundle.basis,
        numbered(bundle.algorithm.text(), bundle.algorithm.number()),
        dst.unwrap_or_default(),
        members.join(",")
    )
}

/// A word, or the number of what has none.
fn numbered(word: &str, number: u16) -> String {
    if word == "unknown" { number.to_string() } else { word.to_owned() }
}

/// Of the text that [`text`] has made, or of its type.
pub(crate) fn format_bundle(words: &[String]) -> String {
    format("bundle", BUNDLE, words)
}

pub(crate) fn format_bundle_load(words: &[String]) -> String {
    format("bundle_load", BUNDLE_LOAD, words)
}

fn format(name: &str, form: &str, words: &[String]) -> String {
    match words {
        [inner] if inner != "BUNDLE" => format!("{name}({inner})"),
        _ => format!("{name}{form}"),
    }
}

/// `multipath(..)`, without the word. In text it has the number of links, on the wire the last one.
pub(crate) fn multipath(piece: Piece<'_>) -> Result<Action, TextError> {
    let mut rest = Some(piece);
    let fields = hash_fields(next(&mut rest, piece)?)?;
    let basis = unsigned(next(&mut rest, piece)?)?;
    let algorithm =
        named(next(&mut rest, piece)?, MultipathAlgorithm::ALL, MultipathAlgorithm::text)?;
    let links = next(&mut rest, piece)?;
    let n_links: u32 = unsigned(links)?;
    let last = n_links.checked_sub(1).and_then(|last| u16::try_from(last).ok());
    let max_link = last.ok_or_else(|| links.error("the links are 1 to 65536"))?;
    let arg = unsigned(next(&mut rest, piece)?)?;
    let place = next(&mut rest, piece)?;
    let (dst, bits) = part(place)?;
    settable(place, dst)?;
    if let Some(more) = rest {
        return Err(more.error("multipath takes no more arguments"));
    }
    if u128::from(max_link) > bits.largest() {
        return Err(place.error(format!("{} bits are too few for {n_links} links", bits.n_bits)));
    }
    Ok(Action::Multipath { fields, basis, algorithm, max_link, arg, bits, dst })
}

pub(crate) fn format_multipath(words: &[String]) -> String {
    let [fields, basis, algorithm, max_link, arg, bits, dst] = words else { return String::new() };
    let number = |word: &String| word.parse::<u16>().ok();
    let read = (number(fields), number(algorithm), number(max_link), number(bits));
    let (Some(fields), Some(algorithm), Some(max_link), Some(bits)) = read else {
        return format!("multipath{MULTIPATH}");
    };
    let Some(dst) = Field::from_name(dst) else { return String::new() };
    format!(
        "multipath({},{basis},{},{},{arg},{})",
        numbered(HashFields::from_number(fields).text(), fields),
        numbered(MultipathAlgorithm::from_number(algorithm).text(), algorithm),
        u32::from(max_link) + 1,
        subfield::part_text(dst, BitRange::from_ofs_nbits(bits))
    )
}

#[cfg(test)]
mod tests {
    use crate::text::{format_actions, parse_actions};

    /// Texts that `ovs-ofctl` prints so.
    #[test]
    fn choices_are_printed_as_they_are_written() {
        for same in [
            "bundle(eth_src,50,hrw,ofport,members:1,2)",
            "bundle(symmetric_l3l4+udp,50,active_backup,ofport,members:1,LOCAL,ANY)",
            "bundle(eth_src,0,hrw,ofport,members:)",
            "bundle_load(nw_src,0,hrw,ofport,NXM_NX_REG0[0..15],members:1,2)",
            "multipath(eth_src,50,modulo_n,1,0,NXM_NX_REG0[])",
            "multipath(symmetric_l4,1024,iter_hash,5,7,NXM_NX_REG0[5..10])",
            "multipath(symmetric_l3,0,hash_threshold,64,0,NXM_NX_REG0[5..10])",
        ] {
            assert_eq!(format_actions(&parse_actions(same).unwrap()), same);
        }
        let old = parse_actions("bundle(nw_dst, 7, hrw, ofport, slaves:NONE,3)").unwrap();
        assert_eq!(format_actions(&old), "bundle(nw_dst,7,hrw,ofport,members:ANY,3)");
    }

    #[test]
    fn a_bad_argument_is_refused_at_its_place() {
        for (bad, why) in [
            ("bundle(eth_source,1,hrw,ofport,members:1)", "column 8: `eth_source` is not known"),
            ("bundle(eth_src,1,hrw,in_port,members:1)", "column 22: the members of a bundle are"),
            ("bundle(eth_src,1,hrw,ofport,1,2)", "column 29: members:PORT,.. is expected here"),
            ("bundle_load(eth_src,1,hrw,ofport,in_port,members:1)", "no action sets in_port"),
            ("multipath(eth_src,1,hrw,0,0,reg0[])", "column 25: the links are 1 to 65536"),
            ("multipath(eth_src,1,hrw,65,0,reg0[0..5])", "6 bits are too few for 65 links"),
            ("multipath(eth_src,1,hrw)", "an argument is missing here"),
        ] {
            let error = parse_actions(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
