//! The words of a flow-mod: from the text of `weir ctl`, from keywords, or both.

use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest};
use openflow::text::{self, PortNames};
use openflow::{BufferId, Cookie, GroupId, PortNo, TableId};
use pyo3::prelude::{Bound, PyAny, PyAnyMethods, PyResult, PyStringMethods};
use pyo3::types::{PyDict, PyInt, PyString};

use crate::errors::word;
use crate::matching;
use crate::packet_in::PacketIn;
use crate::words;

/// The words of a flow-mod.
#[derive(Default)]
pub(crate) struct FlowWords<'a, 'py> {
    pub(crate) text: Option<&'a Bound<'py, PyAny>>,
    pub(crate) matching: Option<&'a Bound<'py, PyAny>>,
    pub(crate) actions: Option<&'a Bound<'py, PyAny>>,
    pub(crate) priority: Option<u16>,
    pub(crate) table_id: Option<u8>,
    pub(crate) cookie: Option<u64>,
    pub(crate) cookie_mask: Option<u64>,
    pub(crate) idle_timeout: Option<u16>,
    pub(crate) hard_timeout: Option<u16>,
    pub(crate) flags: Option<&'a Bound<'py, PyAny>>,
    pub(crate) buffer: Option<&'a Bound<'py, PyAny>>,
    pub(crate) out_port: Option<&'a Bound<'py, PyAny>>,
    pub(crate) out_group: Option<u32>,
    pub(crate) fields: Option<&'a Bound<'py, PyDict>>,
    /// The arguments that are possible beside the fields of the match.
    pub(crate) allowed: &'static str,
}

/// The arguments of additions.
pub(crate) const ADD: &str = "match, actions, priority, table_id, cookie, idle_timeout, \
                              hard_timeout, flags, buffer_id; ";
/// The arguments of modifies.
pub(crate) const MODIFY: &str = "match, actions, priority, table_id, cookie, cookie_mask, strict; ";
/// The arguments of deletes.
pub(crate) const DELETE: &str =
    "match, priority, table_id, cookie, cookie_mask, out_port, out_group, strict; ";
/// The arguments of filters of statistics.
pub(crate) const FILTER: &str = "match, table_id, cookie, cookie_mask, out_port, out_group; ";

impl FlowWords<'_, '_> {
    pub(crate) fn flow_mod(
        self,
        command: FlowModCommand,
        names: impl FnOnce() -> PortNames,
    ) -> PyResult<FlowMod> {
        let mut flow = FlowMod::new(command);
        if let Some(text) = self.text {
            let has_actions = self.actions.is_some();
            flow = of_text(text.cast::<PyString>()?.to_str()?, command, has_actions, &names())?;
        } else if is_delete(command) {
            flow.table_id = TableId::ALL;
        }
        self.fill(flow)
    }

    /// A choice of the entries whose statistics are asked for.
    pub(crate) fn filter(self, names: impl FnOnce() -> PortNames) -> PyResult<FlowStatsRequest> {
        let mut filter = FlowStatsRequest::all();
        if let Some(text) = self.text {
            let text = text.cast::<PyString>()?.to_str()?;
            let parsed = names().parse_flow_filter(text);
            filter = parsed.map_err(|error| word(words::bad("flow", text, &error)))?;
        }
        // A delete chooses its entries by the same words.
        let form = filter.form;
        let FlowStatsRequest {
            table_id, out_port, out_group, cookie, cookie_mask, matching, ..
        } = filter;
        let flow = FlowMod {
            table_id,
            out_port,
            out_group,
            cookie,
            cookie_mask,
            matching,
            ..FlowMod::new(FlowModCommand::Delete)
        };
        let FlowMod { table_id, out_port, out_group, cookie, cookie_mask, matching, .. } =
            self.fill(flow)?;
        Ok(FlowStatsRequest { table_id, out_port, out_group, cookie, cookie_mask, matching, form })
    }

    /// The entry of the text, with the keywords.
    fn fill(self, mut flow: FlowMod) -> PyResult<FlowMod> {
        let deletes = is_delete(flow.command);
        if self.matching.is_some() || self.fields.is_some() {
            if !flow.matching.is_any() {
                return Err(word("the match is given twice: in the text and beside it"));
            }
            flow.matching = matching::of(self.matching, self.fields, self.allowed)?;
        }
        if let Some(actions) = self.actions {
            if deletes {
                return Err(word("a delete takes no actions"));
            }
            flow.instructions = words::instructions(actions, &flow.matching)?;
        } else if self.text.is_none() && !deletes {
            return Err(word("actions are missing: actions=\"output:2\", or \"drop\""));
        }
        self.check_once(&flow)?;
        flow.priority = self.priority.unwrap_or(flow.priority);
        flow.table_id = self.table_id.map_or(flow.table_id, TableId);
        flow.idle_timeout_s = self.idle_timeout.unwrap_or(flow.idle_timeout_s);
        flow.hard_timeout_s = self.hard_timeout.unwrap_or(flow.hard_timeout_s);
        if let Some(cookie) = self.cookie {
            flow.cookie = Cookie(cookie);
            flow.cookie_mask = if deletes { u64::MAX } else { 0 };
        }
        flow.cookie_mask = self.cookie_mask.unwrap_or(flow.cookie_mask);
        if let Some(flags) = self.flags {
            flow.flags |= flags_of(flags)?;
        }
        if let Some(buffer) = self.buffer {
            flow.buffer_id = buffer_of(buffer)?;
        }
        if let Some(port) = self.out_port {
            flow.out_port = port_of(port)?;
        }
        flow.out_group = self.out_group.map_or(flow.out_group, GroupId);
        Ok(flow)
    }

    /// Checks that no value of the text is also given beside it.
    fn check_once(&self, in_text: &FlowMod) -> PyResult<()> {
        let new = FlowMod::new(in_text.command);
        let table_id = if is_delete(in_text.command) { TableId::ALL } else { new.table_id };
        // A cookie alone has one of these masks, and its own may stand beside it.
        let has_mask = ![0, u64::MAX].contains(&in_text.cookie_mask);
        let has_cookie = in_text.cookie != new.cookie || in_text.cookie_mask != 0;
        let both = [
            ("table_id", in_text.table_id != table_id && self.table_id.is_some()),
            ("priority", in_text.priority != new.priority && self.priority.is_some()),
            ("idle_timeout", in_text.idle_timeout_s != 0 && self.idle_timeout.is_some()),
            ("hard_timeout", in_text.hard_timeout_s != 0 && self.hard_timeout.is_some()),
            ("cookie", has_cookie && self.cookie.is_some()),
            ("cookie_mask", has_mask && self.cookie_mask.is_some()),
            ("out_port", in_text.out_port != new.out_port && self.out_port.is_some()),
            ("out_group", in_text.out_group != new.out_group && self.out_group.is_some()),
        ];
        match both.iter().find(|(_, is_twice)| *is_twice) {
            Some((name, _)) => {
                Err(word(format!("{name} is given twice: in the text and beside it")))
            }
            None => Ok(()),
        }
    }
}

fn is_delete(command: FlowModCommand) -> bool {
    matches!(command, FlowModCommand::Delete | FlowModCommand::DeleteStrict)
}

/// A flow as text; actions may stand beside it.
pub(crate) fn of_text(
    text: &str,
    command: FlowModCommand,
    has_actions: bool,
    names: &PortNames,
) -> PyResult<FlowMod> {
    let whole;
    let full = if has_actions {
        if text.contains("actions=") {
            return Err(word("the actions are given twice: in the text and beside it"));
        }
        whole = format!("{text} actions=drop");
        &whole
    } else {
        text
    };
    let parsed = names.parse_flow_mod(full, command);
    parsed.map_err(|error| word(words::bad("flow", text, &error)))
}

fn flags_of(given: &Bound<'_, PyAny>) -> PyResult<FlowModFlags> {
    if given.is_instance_of::<PyInt>() {
        return Ok(FlowModFlags::from_bits_retain(given.extract()?));
    }
    if let Ok(text) = given.cast::<PyString>() {
        let mut flags = FlowModFlags::empty();
        for name in text.to_str()?.split([',', ' ']).filter(|name| !name.is_empty()) {
            flags |= flag_of(name)?;
        }
        return Ok(flags);
    }
    let mut flags = FlowModFlags::empty();
    for item in given.try_iter()? {
        flags |= flag_of(item?.cast::<PyString>()?.to_str()?)?;
    }
    Ok(flags)
}

fn flag_of(name: &str) -> PyResult<FlowModFlags> {
    Ok(match name {
        "send_flow_rem" => FlowModFlags::SEND_FLOW_REM,
        "check_overlap" => FlowModFlags::CHECK_OVERLAP,
        "reset_counts" => FlowModFlags::RESET_COUNTS,
        "no_packet_counts" => FlowModFlags::NO_PKT_COUNTS,
        "no_byte_counts" => FlowModFlags::NO_BYT_COUNTS,
        other => {
            return Err(word(format!(
                "unknown flag `{other}`; allowed are send_flow_rem, check_overlap, reset_counts, \
                 no_packet_counts, no_byte_counts"
            )));
        }
    })
}

fn buffer_of(given: &Bound<'_, PyAny>) -> PyResult<Option<BufferId>> {
    if let Ok(packet) = given.cast::<PacketIn>() {
        return Ok(packet.get().inner.buffer_id);
    }
    // Ryu's OFP_NO_BUFFER.
    Ok(Some(given.extract::<u32>()?).filter(|id| *id != u32::MAX).map(BufferId))
}

/// A port: a number, or a name of a reserved one.
pub(crate) fn port_of(given: &Bound<'_, PyAny>) -> PyResult<PortNo> {
    if let Ok(text) = given.cast::<PyString>() {
        let text = text.to_str()?;
        return text::parse_port(text).map_err(|error| word(words::bad("port", text, &error)));
    }
    Ok(PortNo(given.extract()?))
}
