//! The monitored rows of the database, as of the last update.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::value::{Atom, BadValue, Datum, Uuid};

/// Most rows that are kept.
const ROWS_MAX: usize = 1 << 20;

/// The columns of a row. A column of another type than is asked for is one that is not set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    columns: BTreeMap<String, Datum>,
}

impl Row {
    /// A row of these columns.
    pub fn of<'a>(columns: impl IntoIterator<Item = (&'a str, Datum)>) -> Self {
        let columns = columns.into_iter().map(|(name, datum)| (name.to_owned(), datum));
        Self { columns: columns.collect() }
    }

    /// The value of a column.
    #[must_use]
    pub fn datum(&self, column: &str) -> Option<&Datum> {
        self.columns.get(column)
    }

    fn atoms(&self, column: &str) -> &[Atom] {
        self.columns.get(column).map(Datum::atoms).unwrap_or_default()
    }

    /// The string of a column.
    #[must_use]
    pub fn text(&self, column: &str) -> Option<&str> {
        self.texts(column).next()
    }

    /// The strings of a column.
    pub fn texts(&self, column: &str) -> impl Iterator<Item = &str> {
        self.atoms(column).iter().filter_map(|atom| match atom {
            Atom::Text(text) => Some(text.as_str()),
            Atom::Integer(_) | Atom::Real(_) | Atom::Boolean(_) | Atom::Uuid(_) => None,
        })
    }

    /// The integer of a column.
    #[must_use]
    pub fn integer(&self, column: &str) -> Option<i64> {
        self.integers(column).next()
    }

    /// The integers of a column.
    pub fn integers(&self, column: &str) -> impl Iterator<Item = i64> {
        self.atoms(column).iter().filter_map(|atom| match atom {
            Atom::Integer(number) => Some(*number),
            Atom::Real(_) | Atom::Text(_) | Atom::Boolean(_) | Atom::Uuid(_) => None,
        })
    }

    /// Whether a column is true.
    #[must_use]
    pub fn is_true(&self, column: &str) -> bool {
        self.atoms(column) == [Atom::Boolean(true)]
    }

    /// The rows that a column refers to.
    pub fn references(&self, column: &str) -> impl Iterator<Item = Uuid> {
        self.atoms(column).iter().filter_map(|atom| match atom {
            Atom::Uuid(uuid) => Some(*uuid),
            Atom::Integer(_) | Atom::Real(_) | Atom::Text(_) | Atom::Boolean(_) => None,
        })
    }

    /// The pairs of a map.
    #[must_use]
    pub fn pairs(&self, column: &str) -> &[(Atom, Atom)] {
        match self.columns.get(column) {
            Some(Datum::Map(pairs)) => pairs,
            Some(Datum::Set(_)) | None => &[],
        }
    }

    /// The string that a map of strings has by a key.
    #[must_use]
    pub fn entry(&self, column: &str, key: &str) -> Option<&str> {
        let found = self.pairs(column).iter().find(|(held, _)| *held == Atom::from(key));
        match found {
            Some((_, Atom::Text(text))) => Some(text),
            Some(_) | None => None,
        }
    }
}

/// An update that is none. The replica is no longer that of the database then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUpdate {
    /// It has another form.
    #[error("an update of rows has another form: {0}")]
    Form(&'static str),
    /// A value of a column.
    #[error("table {0}: {1}")]
    Value(String, BadValue),
    /// Too many rows.
    #[error("the database has more than {ROWS_MAX} rows")]
    TooMany,
}

/// All monitored rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replica {
    tables: BTreeMap<String, BTreeMap<Uuid, Row>>,
}

impl Replica {
    /// The rows of a table.
    pub fn rows(&self, table: &str) -> impl Iterator<Item = (Uuid, &Row)> {
        self.tables.get(table).into_iter().flatten().map(|(uuid, row)| (*uuid, row))
    }

    /// A row of a table.
    #[must_use]
    pub fn row(&self, table: &str, uuid: Uuid) -> Option<&Row> {
        self.tables.get(table)?.get(&uuid)
    }

    /// The rows of a table that a column of a row refers to, with their identities.
    pub fn referenced<'a>(
        &'a self,
        row: &'a Row,
        column: &'a str,
        table: &'a str,
    ) -> impl Iterator<Item = (Uuid, &'a Row)> {
        row.references(column).filter_map(move |uuid| Some((uuid, self.row(table, uuid)?)))
    }

    /// Adds a row, in place of the one that was there.
    pub fn insert(&mut self, table: &str, uuid: Uuid, row: Row) {
        self.tables.entry(table.to_owned()).or_default().insert(uuid, row);
    }

    /// Applies the `<table-updates>` of a monitor (4.1.5, 4.1.6).
    ///
    /// # Errors
    /// [`BadUpdate`].
    pub(crate) fn apply(&mut self, updates: &Value) -> Result<(), BadUpdate> {
        let tables = updates.as_object().ok_or(BadUpdate::Form("no tables"))?;
        for (table, rows) in tables {
            for (uuid, change) in rows.as_object().ok_or(BadUpdate::Form("no rows"))? {
                let bad = |error| BadUpdate::Value(table.clone(), error);
                let uuid = uuid.parse().map_err(bad)?;
                match change.get("new") {
                    Some(Value::Object(columns)) => {
                        let columns = columns.iter().map(|(name, value)| {
                            Ok((name.clone(), Datum::read(value).map_err(bad)?))
                        });
                        let row = Row { columns: columns.collect::<Result<_, _>>()? };
                        self.insert(table, uuid, row);
                    }
                    None if change.get("old").is_some() => {
                        if let Some(rows) = self.tables.get_mut(table) {
                            rows.remove(&uuid);
                        }
                    }
                    Some(_) | None => return Err(BadUpdate::Form("a row is old or new")),
                }
            }
        }
        let rows: usize = self.tables.values().map(BTreeMap::len).sum();
        if rows > ROWS_MAX { Err(BadUpdate::TooMany) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Replica;

    const A: &str = "24efc8e7-2a32-4e1b-9eb2-b0bfa0b5d71c";
    const B: &str = "34efc8e7-2a32-4e1b-9eb2-b0bfa0b5d71c";

    #[test]
    fn rows_come_change_and_go() {
        let mut replica = Replica::default();
        let first = json!({
            "Bridge": { A: { "new": {
                "name": "br0", "ports": ["set", [["uuid", B]]], "stp_enable": false,
                "other_config": ["map", [["datapath-id", "00a1"]]], "flood_vlans": ["set", [3, 1]],
            } } },
            "Port": { B: { "new": { "name": "p1" } } },
        });
        replica.apply(&first).unwrap();
        let (_, bridge) = replica.rows("Bridge").next().unwrap();
        assert_eq!((bridge.text("name"), bridge.integer("name")), (Some("br0"), None));
        assert_eq!(bridge.entry("other_config", "datapath-id"), Some("00a1"));
        assert_eq!(bridge.integers("flood_vlans").collect::<Vec<_>>(), [1, 3]);
        assert!(!bridge.is_true("stp_enable"));
        let ports: Vec<_> = replica.referenced(bridge, "ports", "Port").collect();
        assert_eq!(ports[0].1.text("name"), Some("p1"));
        replica.apply(&json!({"Port": { B: { "old": { "name": "p1" } } }})).unwrap();
        assert_eq!(replica.rows("Port").count(), 0);
        assert_eq!(replica.referenced(bridge_of(&replica), "ports", "Port").count(), 0);
    }

    fn bridge_of(replica: &Replica) -> &super::Row {
        replica.rows("Bridge").next().unwrap().1
    }

    #[test]
    fn other_updates_are_refused() {
        for update in [
            json!(null),
            json!({"Bridge": []}),
            json!({"Bridge": {"x": {"new": {}}}}),
            json!({"Bridge": {A: {}}}),
            json!({"Bridge": {A: {"new": null}}}),
            json!({"Bridge": {A: {"new": {"name": {}}}}}),
        ] {
            assert!(Replica::default().apply(&update).is_err(), "{update}");
        }
    }
}
