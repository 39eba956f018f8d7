//! Actions and instructions, from text or from values.
//!
//! The text is that of `weir ctl`; Ryu's classes (`weir/ryu`) make the same values. Texts that
//! were read are kept, since an app says the same few again and again.

use std::collections::HashMap;
use std::sync::Mutex;

use openflow::{Match, text};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::{
    Bound, PyAny, PyAnyMethods, PyResult, PyStringMethods, PyTypeMethods, pyclass, pymethods,
};
use pyo3::types::{PyList, PyString, PyTuple};

use crate::errors::word;
use crate::lock::lock;

/// Texts kept; beyond them all are read anew.
const KEPT_MAX: usize = 4_096;

/// Actions: what happens to a packet.
#[pyclass(frozen, eq, hash, module = "weir")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Action {
    pub(crate) list: Vec<openflow::Action>,
}

#[pymethods]
impl Action {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let list = text::parse_actions(text).map_err(|error| word(bad("actions", text, &error)))?;
        Ok(Self { list })
    }

    fn __str__(&self) -> String {
        text::format_actions(&self.list)
    }

    fn __repr__(&self) -> String {
        format!("Action({:?})", self.__str__())
    }
}

/// Instructions: what a flow entry does.
#[pyclass(frozen, eq, hash, module = "weir")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Instruction {
    pub(crate) list: Vec<openflow::Instruction>,
}

#[pymethods]
impl Instruction {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let parsed = text::parse_instructions(text);
        let list = parsed.map_err(|error| word(bad("instructions", text, &error)))?;
        Ok(Self { list })
    }

    fn __str__(&self) -> String {
        text::format_instructions(&self.list)
    }

    fn __repr__(&self) -> String {
        format!("Instruction({:?})", self.__str__())
    }
}

/// The error in a text, with the text.
pub(crate) fn bad(what: &str, text: &str, error: &text::TextError) -> String {
    format!("{what} {text:?}: {error}")
}

/// Texts that were read, with what they mean.
struct Kept<T>(Mutex<Option<HashMap<String, T>>>);

impl<T: Clone> Kept<T> {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn get(&self, text: &str, read: impl FnOnce(&str) -> PyResult<T>) -> PyResult<T> {
        if let Some(found) = lock(&self.0).as_ref().and_then(|kept| kept.get(text)) {
            return Ok(found.clone());
        }
        let value = read(text)?;
        let mut kept = lock(&self.0);
        let kept = kept.get_or_insert_default();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(text.to_owned(), value.clone());
        Ok(value)
    }
}

static ACTIONS: Kept<Vec<openflow::Action>> = Kept::new();
static INSTRUCTIONS: Kept<Vec<openflow::Instruction>> = Kept::new();
/// Texts that are all of a flow entry's instructions.
static WHOLE: Kept<Vec<openflow::Instruction>> = Kept::new();

/// Actions from a text, an [`Action`], or a list of both.
pub(crate) fn actions(given: &Bound<'_, PyAny>) -> PyResult<Vec<openflow::Action>> {
    if let Ok(text) = given.cast::<PyString>() {
        return ACTIONS.get(text.to_str()?, |text| Ok(Action::new(text)?.list));
    }
    if let Ok(action) = given.cast::<Action>() {
        return Ok(action.get().list.clone());
    }
    if !is_list(given) {
        return Err(PyTypeError::new_err(format!(
            "actions are a text such as \"output:2\", a weir.Action or a list of these, not {}",
            given.get_type().name()?
        )));
    }
    let mut list = Vec::new();
    for item in given.try_iter()? {
        list.extend(actions(&item?)?);
    }
    Ok(list)
}

/// Instructions from the actions of a flow entry, which may be a text with instructions too, from
/// an [`Instruction`], or from a list of all of them. Actions that stand alone are applied.
/// Names that fields share are those of the match.
pub(crate) fn instructions(
    given: &Bound<'_, PyAny>,
    matching: &Match,
) -> PyResult<Vec<openflow::Instruction>> {
    if let Ok(text) = given.cast::<PyString>() {
        // What most apps give is kept in the form in which it is sent.
        let kept = WHOLE.get(text.to_str()?, |_| gathered(given, None));
        return kept.or_else(|_| gathered(given, Some(matching)));
    }
    gathered(given, Some(matching))
}

fn gathered(
    given: &Bound<'_, PyAny>,
    matching: Option<&Match>,
) -> PyResult<Vec<openflow::Instruction>> {
    let mut gathered = Gathered::default();
    gathered.take(given, matching)?;
    let mut list = gathered.list;
    if !gathered.applied.is_empty() {
        list.push(openflow::Instruction::ApplyActions(gathered.applied));
    }
    list.sort_by_key(openflow::Instruction::kind);
    Ok(list)
}

#[derive(Default)]
struct Gathered {
    list: Vec<openflow::Instruction>,
    applied: Vec<openflow::Action>,
}

impl Gathered {
    fn take(&mut self, given: &Bound<'_, PyAny>, matching: Option<&Match>) -> PyResult<()> {
        if let Ok(text) = given.cast::<PyString>() {
            let text = text.to_str()?;
            let kept = INSTRUCTIONS.get(text, |text| Ok(Instruction::new(text)?.list));
            let read = match matching {
                Some(matching) => kept.or_else(|_| {
                    let read = text::parse_instructions_on(text, matching);
                    read.map_err(|error| word(bad("instructions", text, &error)))
                })?,
                None => kept?,
            };
            return self.add(read);
        }
        if let Ok(instruction) = given.cast::<Instruction>() {
            return self.add(instruction.get().list.clone());
        }
        if is_list(given) {
            for item in given.try_iter()? {
                self.take(&item?, matching)?;
            }
            return Ok(());
        }
        self.applied.extend(actions(given)?);
        Ok(())
    }

    fn add(&mut self, instructions: Vec<openflow::Instruction>) -> PyResult<()> {
        for instruction in instructions {
            if let openflow::Instruction::ApplyActions(actions) = instruction {
                self.applied.extend(actions);
            } else if self.list.iter().any(|held| held.kind() == instruction.kind()) {
                let text = text::format_instructions(&[instruction]);
                return Err(word(format!("instruction {text} is given twice")));
            } else {
                self.list.push(instruction);
            }
        }
        Ok(())
    }
}

fn is_list(given: &Bound<'_, PyAny>) -> bool {
    given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>()
}
