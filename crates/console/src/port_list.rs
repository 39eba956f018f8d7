//! Lists of ports as Pktgen writes them: `0,2,4-6`, or `all`.
//!
//! A port is an index into the ports of the session, from 0. A list that names a port twice, or one
//! that does not exist, is refused, so that a slip never reaches another port than was meant.

use std::collections::BTreeSet;

use openflow::text::{parse_decimal, zero_advice};

/// The mistake in a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PortListError {
    /// An item is neither a number nor two with a hyphen between.
    #[error(
        "{0:?} is no port list; write numbers and ranges (0,2,4-6), or all{advice}",
        advice = zero_advice(.0)
    )]
    Syntax(String),
    /// There is no such port.
    #[error("there is no port {port}; ports are {}", ports_text(*.count))]
    Unknown {
        /// The port as written.
        port: usize,
        /// The number of ports.
        count: usize,
    },
    /// The first port of a range is greater than its last one.
    #[error("range {0:?} runs backwards")]
    Backwards(String),
    /// A port stands there twice.
    #[error("port {0} is in the list twice")]
    Twice(usize),
}

fn ports_text(count: usize) -> String {
    match count {
        0 => "none".to_owned(),
        1 => "0 only".to_owned(),
        _ => format!("0 to {}", count - 1),
    }
}

/// The ports that `text` names, in ascending order, of `count` ports.
///
/// # Errors
/// An item that is no port of the session.
pub(crate) fn parse(text: &str, count: usize) -> Result<Vec<usize>, PortListError> {
    if text == "all" {
        return Ok((0..count).collect());
    }
    let mut ports = BTreeSet::new();
    for item in text.split(',') {
        let number = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = parse_decimal::<usize>(digits).filter(|_| is_number);
            number.ok_or_else(|| PortListError::Syntax(text.to_owned()))
        };
        let (first, last) = match item.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(item)?, number(item)?),
        };
        if first > last {
            return Err(PortListError::Backwards(item.to_owned()));
        }
        if last >= count {
            return Err(PortListError::Unknown { port: last, count });
        }
        for port in first..=last {
            if !ports.insert(port) {
                return Err(PortListError::Twice(port));
            }
        }
    }
    Ok(ports.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::{PortListError, parse};

    #[test]
    fn lists_ranges_and_all_name_ports() {
        assert_eq!(parse("0,2,4-6", 8), Ok(vec![0, 2, 4, 5, 6]));
        assert_eq!(parse("4-6,0", 8), Ok(vec![0, 4, 5, 6]));
        assert_eq!(parse("all", 3), Ok(vec![0, 1, 2]));
        assert_eq!(parse("1", 2), Ok(vec![1]));
    }

    #[test]
    fn slips_are_refused_with_what_there_is() {
        let message = |text: &str| parse(text, 2).unwrap_err().to_string();
        assert_eq!(message("7"), "there is no port 7; ports are 0 to 1");
        assert_eq!(message("0-7"), "there is no port 7; ports are 0 to 1");
        assert_eq!(message("1-0"), "range \"1-0\" runs backwards");
        assert_eq!(message("0,0-1"), "port 0 is in the list twice");
        for text in ["", ",", "0,", "a", "-1", "0-", "0x1", "+1", "0 1", "0-1-1"] {
            assert_eq!(parse(text, 2), Err(PortListError::Syntax(text.to_owned())), "{text:?}");
        }
        // A long range costs no memory before it is refused.
        assert!(parse("0-18446744073709551615", 2).is_err());
    }
}
