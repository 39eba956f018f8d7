//! Flow monitors in text: what stands after `watch:` in `ovs-ofctl monitor` and `weir ctl monitor`.

use super::{PortNames, TextError};
use crate::flow_monitor::{FlowMonitorCommand, FlowMonitorFlags, FlowMonitorRequest};

/// Words that take something from what is reported.
const WITHOUT: [(&str, FlowMonitorFlags); 6] = [
    ("!initial", FlowMonitorFlags::INITIAL),
    ("!add", FlowMonitorFlags::ADD),
    ("!delete", FlowMonitorFlags::REMOVED),
    ("!modify", FlowMonitorFlags::MODIFY),
    ("!actions", FlowMonitorFlags::INSTRUCTIONS),
    ("!own", FlowMonitorFlags::NO_ABBREV),
];

impl PortNames {
    /// Reads a flow monitor of a number: a filter as that of `dump-flows`, and words for what is
    /// not reported: `!initial,!own,table=1,ip`.
    ///
    /// # Errors
    /// As [`super::parse_flow_filter`]; on a cookie, by which none is chosen, and on unknown words.
    pub fn parse_flow_monitor(
        &self,
        monitor_id: u32,
        text: &str,
    ) -> Result<FlowMonitorRequest, TextError> {
        let mut flags = FlowMonitorFlags::INITIAL
            | FlowMonitorFlags::CHANGES
            | FlowMonitorFlags::INSTRUCTIONS
            | FlowMonitorFlags::NO_ABBREV;
        // Blanks in the place of these words, so that the places of the others stay.
        let (mut rest, mut at) = (String::new(), 0);
        for word in text.split_inclusive(',') {
            let name = word.trim_end_matches(',').trim();
            if let Some((_, flag)) = WITHOUT.iter().find(|(known, _)| *known == name) {
                flags -= *flag;
                rest.extend(std::iter::repeat_n(' ', word.len()));
            } else if name.starts_with('!') {
                let known: Vec<&str> = WITHOUT.iter().map(|(known, _)| *known).collect();
                let known = known.join(", ");
                return Err(TextError::new(at, format!("unknown word `{name}`: take {known}")));
            } else if name.starts_with("cookie") {
                return Err(TextError::new(at, "a flow monitor chooses no entries by cookie"));
            } else {
                rest += word;
            }
            at += word.len();
        }
        let filter = self.parse_flow_filter(&rest)?;
        Ok(FlowMonitorRequest {
            monitor_id,
            command: FlowMonitorCommand::Add,
            flags,
            table_id: filter.table_id,
            out_port: filter.out_port,
            out_group: filter.out_group,
            matching: filter.matching,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::PortNames;
    use crate::field::Field;
    use crate::flow_monitor::FlowMonitorFlags;
    use crate::id::{PortNo, TableId};
    use crate::matching::Match;

    #[test]
    fn words_take_from_what_is_reported() {
        let names = PortNames::default();
        let read = |text: &str| names.parse_flow_monitor(3, text);
        let all = read("").unwrap();
        assert_eq!(all.flags.bits(), 0x3f);
        assert_eq!((all.monitor_id, all.table_id), (3, TableId::ALL));
        let some = read("!own,out_port=2, !initial,in_port=1,table=4").unwrap();
        assert_eq!(some.flags, all.flags - FlowMonitorFlags::INITIAL - FlowMonitorFlags::NO_ABBREV);
        assert_eq!((some.out_port, some.table_id), (PortNo(2), TableId(4)));
        assert_eq!(some.matching, Match::any().with(Field::InPort, 1));
        for (text, at, why) in [
            ("!own,!x", 5, "unknown word `!x`"),
            ("ip,cookie=1", 3, "by cookie"),
            ("!own,priority=1", 5, "has no effect"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.to_string().contains(why), "{text}: {error}");
        }
    }
}
