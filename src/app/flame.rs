//! Where a person is in the tree of stacks: which frame is selected, and which one has the whole width.

use gnntop_analysis::store::StackTree;
use gnntop_wire::NameId;

use super::command::Command;

/// A place in the tree of stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flame {
    /// The selected frame preceded by its callers, the phase first. Empty if all stacks are selected.
    path: Vec<NameId>,
    /// As many of those have the whole width.
    zoom: usize,
}

impl Flame {
    /// The selected frame, after the phase and those that it was called from.
    pub fn selected(&self) -> &[NameId] {
        &self.path
    }

    /// The innermost frame that has the whole width, the same way.
    pub fn zoomed(&self) -> &[NameId] {
        &self.path[..self.zoom.min(self.path.len())]
    }

    /// Does what a key asks for.
    pub(super) fn apply(&mut self, command: Command, tree: &StackTree) {
        self.keep_within(tree);
        match command {
            Command::Scroll { lines: ..0 } => self.select_caller(),
            Command::Scroll { .. } => {
                self.select_callee(tree);
            }
            Command::ScrollEnd { bottom: false } => *self = Self::default(),
            Command::ScrollEnd { bottom: true } => while self.select_callee(tree) {},
            Command::MoveCursor { columns } => self.select_sibling(columns > 0, tree),
            Command::Zoom { inward: true } => self.zoom = self.path.len(),
            Command::Zoom { inward: false } => self.zoom = self.zoom.saturating_sub(1),
            _ => (),
        }
    }

    /// Gives the whole width back to all stacks; whether anything else had it.
    pub(super) fn reset_zoom(&mut self) -> bool {
        std::mem::take(&mut self.zoom) > 0
    }

    /// A replay that was moved back may not have the selected frame yet.
    fn keep_within(&mut self, tree: &StackTree) {
        let known = (0..=self.path.len()).rev().find(|depth| tree.get(&self.path[..*depth]).is_some());
        self.path.truncate(known.unwrap_or(0));
        self.zoom = self.zoom.min(self.path.len());
    }

    fn select_caller(&mut self) {
        self.path.pop();
        self.zoom = self.zoom.min(self.path.len());
    }

    /// To what is most often called from the selected frame; whether it calls anything.
    fn select_callee(&mut self, tree: &StackTree) -> bool {
        let called = tree.get(&self.path).and_then(|node| node.most_frequent().first().map(|(frame, _)| *frame));
        self.path.extend(called);
        called.is_some()
    }

    /// To the next frame that has the same caller, by their frequency.
    fn select_sibling(&mut self, forward: bool, tree: &StackTree) {
        let Some((selected, callers)) = self.path.split_last() else {
            self.select_callee(tree);
            return;
        };
        // A frame that has the whole width has nothing beside it.
        let Some(caller) = tree.get(callers).filter(|_| self.path.len() > self.zoom) else { return };
        let frames: Vec<NameId> = caller.most_frequent().into_iter().map(|(frame, _)| frame).collect();
        let at = frames.iter().position(|frame| frame == selected).unwrap_or(0);
        let next = if forward { (at + 1).min(frames.len() - 1) } else { at.saturating_sub(1) };
        let depth = self.path.len() - 1;
        self.path[depth] = frames[next];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// 9 calls 2, which calls 1 (three times) and 3 (once); 8 is alone (twice).
    fn tree() -> StackTree {
        let leaf = |count| StackTree { count, calls: BTreeMap::new() };
        let node = |count, calls: Vec<(u32, StackTree)>| StackTree {
            count,
            calls: calls.into_iter().map(|(id, tree)| (NameId(id), tree)).collect(),
        };
        let two = node(4, vec![(1, leaf(3)), (3, leaf(1))]);
        node(6, vec![(9, node(4, vec![(2, two)])), (8, leaf(2))])
    }

    fn after(commands: &[Command]) -> (Vec<u32>, usize) {
        let (mut flame, tree) = (Flame::default(), tree());
        commands.iter().for_each(|command| flame.apply(*command, &tree));
        (flame.path.iter().map(|id| id.0).collect(), flame.zoom)
    }

    const IN: Command = Command::Scroll { lines: 1 };
    const OUT: Command = Command::Scroll { lines: -1 };
    const NEXT: Command = Command::MoveCursor { columns: 1 };
    const LARGER: Command = Command::Zoom { inward: true };

    #[test]
    fn down_selects_most_frequent_callee_and_sideways_the_siblings() {
        assert_eq!(after(&[IN, IN, IN]).0, [9, 2, 1]);
        assert_eq!(after(&[IN, IN, IN, IN, NEXT, NEXT]).0, [9, 2, 3], "no further than the last");
        assert_eq!(after(&[NEXT, NEXT]).0, [8], "the first press selects");
        assert_eq!(after(&[Command::ScrollEnd { bottom: true }]).0, [9, 2, 1]);
        assert!(after(&[IN, OUT, OUT]).0.is_empty());
    }

    #[test]
    fn zoom_is_kept_around_the_selected_frame() {
        assert_eq!(after(&[IN, LARGER, IN]), (vec![9, 2], 1));
        assert_eq!(after(&[IN, LARGER, NEXT]), (vec![9], 1), "nothing is beside it");
        assert_eq!(after(&[IN, IN, LARGER, OUT]), (vec![9], 1));
        assert_eq!(after(&[IN, IN, LARGER, Command::Zoom { inward: false }]), (vec![9, 2], 1));
    }

    #[test]
    fn missing_frame_is_deselected() {
        let mut flame = Flame { path: vec![NameId(9), NameId(77)], zoom: 2 };
        flame.apply(NEXT, &tree());
        assert_eq!(flame, Flame { path: vec![NameId(9)], zoom: 1 });
        assert!(flame.reset_zoom() && !flame.reset_zoom());
    }
}
