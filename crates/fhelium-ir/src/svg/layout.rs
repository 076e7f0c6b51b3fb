//! Where the boxes go: rows by layer, ordered so that lines cross little.

use super::graph::{Graph, Node};

/// A box's place, in pixels.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rect {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Rect {
    pub(super) fn center(self) -> f64 {
        self.x + self.width / 2.0
    }

    pub(super) fn bottom(self) -> f64 {
        self.y + self.height
    }
}

pub(super) struct Layout {
    pub rects: Vec<Rect>,
    /// For each edge of the graph, in order, the gaps between boxes that it passes through, as
    /// places among `rects`.
    pub bends: Vec<Vec<usize>>,
    pub width: f64,
    pub height: f64,
}

pub(super) const TITLE_HEIGHT: f64 = 20.0;
pub(super) const LINE_HEIGHT: f64 = 15.0;
pub(super) const PADDING: f64 = 8.0;
pub(super) const CHIP_WIDTH: f64 = 26.0;
/// Space above the picture for its name and the key to its colours.
pub(super) const HEADER: f64 = 64.0;
const MARGIN: f64 = 24.0;
const COLUMN_GAP: f64 = 18.0;
const ROW_GAP: f64 = 44.0;
const BEND_WIDTH: f64 = 8.0;
const MOST_BENDS: usize = 10_000;
const SWEEPS: usize = 6;

/// The title as it is shown.
pub(super) fn title(node: &Node) -> String {
    match node.count {
        1 => node.title.clone(),
        count => format!("{} \u{d7}{count}", node.title),
    }
}

/// Width of text, near enough for a sans-serif face.
fn text_width(text: &str, per_character: f64) -> f64 {
    text.chars().count() as f64 * per_character
}

fn size(node: &Node) -> (f64, f64) {
    let chip = if node.level.is_some() {
        CHIP_WIDTH + 6.0
    } else {
        0.0
    };
    let title = text_width(&title(node), 8.8) + chip;
    let details = node.details.iter().map(|line| text_width(line, 6.5));
    let width = details.fold(title, f64::max) + 2.0 * PADDING;
    let height = TITLE_HEIGHT + node.details.len() as f64 * LINE_HEIGHT + PADDING;
    (width, height)
}

impl Layout {
    pub(super) fn new(graph: &Graph) -> Self {
        let mut layers: Vec<usize> = graph.nodes.iter().map(|node| node.layer).collect();
        let bends = bends(graph, &mut layers);
        let count = layers.len();
        let mut above: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (&(from, to), bends) in graph.edges.keys().zip(&bends) {
            let mut last = from;
            for &next in bends.iter().chain(Some(&to)) {
                above[next].push(last);
                below[last].push(next);
                last = next;
            }
        }
        let depth = layers.iter().max().map_or(0, |&layer| layer + 1);
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); depth];
        for (place, &layer) in layers.iter().enumerate() {
            rows[layer].push(place);
        }
        // Banding may leave rows empty.
        rows.retain(|row| !row.is_empty());
        let mut rects = vec![Rect::default(); count];
        let mut y = MARGIN + HEADER;
        for row in &rows {
            let mut tallest: f64 = 0.0;
            for &place in row {
                let (width, height) = graph.nodes.get(place).map_or((BEND_WIDTH, 0.0), size);
                rects[place] = Rect {
                    x: 0.0,
                    y,
                    width,
                    height,
                };
                tallest = tallest.max(height);
            }
            // A line goes straight past the boxes of its row.
            for &place in row.iter().filter(|&&place| place >= graph.nodes.len()) {
                rects[place].height = tallest;
            }
            y += tallest + ROW_GAP;
        }
        for row in &rows {
            spread(row, &mut rects, |_, rect| rect.center());
        }
        for sweep in 0..SWEEPS {
            // Downwards by what stands above, then upwards by what stands below.
            let (neighbours, order): (_, Vec<usize>) = if sweep % 2 == 0 {
                (&above, (0..rows.len()).collect())
            } else {
                (&below, (0..rows.len()).rev().collect())
            };
            for row in order {
                let centers: Vec<f64> = rects.iter().map(|rect| rect.center()).collect();
                let wish = |place: usize, rect: Rect| match &neighbours[place][..] {
                    [] => rect.center(),
                    some => some.iter().map(|&n| centers[n]).sum::<f64>() / some.len() as f64,
                };
                rows[row].sort_by(|&a, &b| wish(a, rects[a]).total_cmp(&wish(b, rects[b])));
                spread(&rows[row], &mut rects, wish);
            }
        }
        let left = rects
            .iter()
            .map(|rect| rect.x)
            .fold(f64::INFINITY, f64::min);
        for rect in &mut rects {
            rect.x += MARGIN - left;
        }
        let right = rects
            .iter()
            .map(|rect| rect.x + rect.width)
            .fold(0.0, f64::max);
        Layout {
            width: (right + MARGIN).max(560.0),
            height: y - ROW_GAP + MARGIN,
            rects,
            bends,
        }
    }
}

/// A gap in every row that an edge passes, added to `layers` behind the boxes; none where that
/// would be too many.
fn bends(graph: &Graph, layers: &mut Vec<usize>) -> Vec<Vec<usize>> {
    let rows = |&(from, to): &(usize, usize)| graph.nodes[from].layer + 1..graph.nodes[to].layer;
    let total: usize = graph.edges.keys().map(|edge| rows(edge).len()).sum();
    let mut bends = Vec::with_capacity(graph.edges.len());
    for edge in graph.edges.keys() {
        let first = layers.len();
        if total <= MOST_BENDS {
            layers.extend(rows(edge));
        }
        bends.push((first..layers.len()).collect());
    }
    bends
}

/// Puts the boxes of a row side by side in order, as close to the wished centres as they fit.
fn spread(row: &[usize], rects: &mut [Rect], wish: impl Fn(usize, Rect) -> f64) {
    let wishes: Vec<f64> = row.iter().map(|&place| wish(place, rects[place])).collect();
    let mut edge = f64::NEG_INFINITY;
    let mut drift = 0.0;
    for (&place, &center) in row.iter().zip(&wishes) {
        let rect = &mut rects[place];
        rect.x = (center - rect.width / 2.0).max(edge);
        edge = rect.x + rect.width + COLUMN_GAP;
        drift += rect.center() - center;
    }
    // Boxes were only pushed to the right: move the row back by what that cost on average.
    drift /= row.len().max(1) as f64;
    for &place in row {
        rects[place].x -= drift;
    }
}
