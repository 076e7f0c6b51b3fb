//! A picture of a Program: its operations as boxes in layers, from the inputs down.

mod draw;
mod graph;
mod layout;

use crate::Program;

impl Program {
    /// An SVG picture of the Program.
    ///
    /// An operation is a box coloured by its dialect, with its attributes, the type of its result
    /// and a chip that shows the level; the whole line of text is its tooltip. In a Program of
    /// more than a few dozen operations, sums become one box, and operations that are alike and
    /// equally far from the inputs are drawn as one with their number; in a Program of hundreds
    /// of layers a box holds several layers.
    pub fn to_svg(&self) -> String {
        let graph = graph::Graph::new(self);
        let layout = layout::Layout::new(&graph);
        draw::draw(self, &graph, &layout)
    }
}
