//! The order of a scenario's cells: those that one start of a switch serves, together.

use super::scenario::ScenarioCell;

/// Cells that differ in what is sent only.
#[derive(Debug, PartialEq)]
pub(super) struct Group<'a> {
    /// The cells with their places in the scenario.
    pub(super) cells: Vec<(usize, &'a ScenarioCell)>,
}

impl<'a> Group<'a> {
    /// Those of its cells that are wanted.
    pub(super) fn with(&self, is_wanted: impl Fn(&ScenarioCell) -> bool) -> Self {
        Self { cells: self.cells.iter().filter(|(_, cell)| is_wanted(cell)).copied().collect() }
    }
}

/// The cells in groups, each in the order of its first cell.
pub(super) fn groups(cells: &[ScenarioCell]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let fits =
            |group: &&mut Group<'_>| cell.settings.has_same_setup(&group.cells[0].1.settings);
        match groups.iter_mut().find(fits) {
            Some(group) => group.cells.push((index, cell)),
            None => groups.push(Group { cells: vec![(index, cell)] }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::groups;
    use crate::campaign::scenario::ScenarioCell;
    use crate::results::Coordinates;
    use crate::settings::Settings;

    #[test]
    fn cells_of_one_start_stand_together() {
        let cell = |flow: &str, frame_size| ScenarioCell {
            at: Coordinates::new(),
            settings: Settings {
                flows: Some(vec![flow.to_owned()]),
                frame_size: Some(frame_size),
                ..Settings::default()
            },
        };
        let cells = [cell("a", 64), cell("b", 64), cell("a", 128), cell("b", 128)];
        let groups = groups(&cells);
        let places: Vec<Vec<usize>> =
            groups.iter().map(|group| group.cells.iter().map(|cell| cell.0).collect()).collect();
        assert_eq!(places, [[0, 2], [1, 3]]);
    }
}
