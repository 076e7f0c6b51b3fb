//! Writing the picture.

use super::graph::{Graph, Role};
use super::layout::{CHIP_WIDTH, LINE_HEIGHT, Layout, PADDING, TITLE_HEIGHT, title};
use crate::{Dialect, Program};
use std::collections::HashSet;
use std::fmt::{self, Write};

/// Text with the characters that XML gives a meaning, or forbids, replaced.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\n' => f.write_char('\n')?,
                '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                other if other.is_control() => f.write_char('\u{fffd}')?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// Fill and border of a box.
fn colours(role: Role) -> (&'static str, &'static str) {
    match role {
        Role::Input => ("#ffffff", "#1f2937"),
        Role::Output => ("#e5e7eb", "#1f2937"),
        Role::Operation(Dialect::Core) => ("#f3f4f6", "#9ca3af"),
        Role::Operation(Dialect::Tensor) => ("#fef3c7", "#d97706"),
        Role::Operation(Dialect::He) => ("#dbeafe", "#2563eb"),
        Role::Operation(Dialect::Ckks) => ("#ccfbf1", "#0d9488"),
        Role::Operation(Dialect::Rns) => ("#ede9fe", "#7c3aed"),
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Input => "input",
        Role::Output => "output",
        Role::Operation(dialect) => dialect.name(),
    }
}

/// From red at level 0 to green at the depth.
fn level_colour(level: usize, depth: usize) -> String {
    let share = level as f64 / depth.max(1) as f64;
    format!("hsl({:.0}, 65%, 38%)", 130.0 * share.clamp(0.0, 1.0))
}

pub(super) fn draw(program: &Program, graph: &Graph, layout: &Layout) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut out, program, graph, layout);
    out
}

fn write_all(out: &mut String, program: &Program, graph: &Graph, layout: &Layout) -> fmt::Result {
    let (width, height) = (layout.width.ceil(), layout.height.ceil());
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">"
    )?;
    writeln!(
        out,
        "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"
    )?;
    header(out, program, graph)?;
    for ((&(from, to), &count), bends) in graph.edges.iter().zip(&layout.bends) {
        let mut last = layout.rects[from];
        write!(out, "<path d=\"M{:.1} {:.1}", last.center(), last.bottom())?;
        for &next in bends.iter().chain(Some(&to)) {
            let rect = layout.rects[next];
            let (x1, x2) = (last.center(), rect.center());
            let half = (last.bottom() + rect.y) / 2.0;
            write!(
                out,
                " C{x1:.1} {half:.1} {x2:.1} {half:.1} {x2:.1} {:.1}",
                rect.y
            )?;
            if next != to {
                write!(out, " V{:.1}", rect.bottom())?;
            }
            last = rect;
        }
        writeln!(
            out,
            "\" fill=\"none\" stroke=\"#6b7280\" stroke-opacity=\"0.55\" stroke-width=\"{:.1}\"/>",
            1.0 + (count as f64).log2() * 0.6
        )?;
    }
    let depth = program.chain().map_or(0, |chain| chain.depth());
    for (node, rect) in graph.nodes.iter().zip(&layout.rects) {
        let (fill, border) = colours(node.role);
        writeln!(out, "<g><title>{}</title>", Escaped(&node.tooltip))?;
        let shape = |out: &mut String, offset: f64| {
            writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"5\" \
                 fill=\"{fill}\" stroke=\"{border}\"/>",
                rect.x + offset,
                rect.y + offset,
                rect.width,
                rect.height
            )
        };
        if node.count > 1 {
            // A second sheet behind the first: a pile.
            shape(out, 3.0)?;
        }
        shape(out, 0.0)?;
        let x = rect.x + PADDING;
        writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"13\" font-weight=\"bold\">{}</text>",
            rect.y + TITLE_HEIGHT - 4.0,
            Escaped(&title(node))
        )?;
        for (line, text) in node.details.iter().enumerate() {
            writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"11\" fill=\"#374151\">{}</text>",
                rect.y + TITLE_HEIGHT + LINE_HEIGHT * (line + 1) as f64 - 3.0,
                Escaped(text)
            )?;
        }
        if let Some(level) = node.level {
            let chip = rect.x + rect.width - CHIP_WIDTH - 5.0;
            writeln!(
                out,
                "<rect x=\"{chip:.1}\" y=\"{:.1}\" width=\"{CHIP_WIDTH}\" height=\"14\" rx=\"7\" \
                 fill=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10\" fill=\"#ffffff\" \
                 text-anchor=\"middle\">L{level}</text>",
                rect.y + 5.0,
                level_colour(level, depth),
                chip + CHIP_WIDTH / 2.0,
                rect.y + 15.5
            )?;
        }
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    Ok(())
}

/// The Program's name and the key to the colours.
fn header(out: &mut String, program: &Program, graph: &Graph) -> fmt::Result {
    let name: String = program.name().chars().take(60).collect();
    writeln!(
        out,
        "<text x=\"24\" y=\"30\" font-size=\"17\" font-weight=\"bold\">{}</text>",
        Escaped(&name)
    )?;
    let mut facts = format!("{} operations", program.body().ops().len());
    if let Some(chain) = program.chain() {
        write!(
            facts,
            ", N = 2^{}, {} levels, scale {}",
            chain.log_n(),
            chain.depth(),
            chain.scale()
        )?;
    }
    writeln!(
        out,
        "<text x=\"24\" y=\"48\" font-size=\"12\" fill=\"#374151\">{}; L is the level of a result</text>",
        Escaped(&facts)
    )?;
    let mut shown = HashSet::new();
    let mut x = 24.0;
    for node in &graph.nodes {
        if !shown.insert(node.role) {
            continue;
        }
        let (fill, border) = colours(node.role);
        let name = role_name(node.role);
        writeln!(
            out,
            "<rect x=\"{x}\" y=\"57\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{fill}\" \
             stroke=\"{border}\"/><text x=\"{}\" y=\"67\" font-size=\"11\">{name}</text>",
            x + 17.0
        )?;
        x += 32.0 + 7.0 * name.len() as f64;
    }
    Ok(())
}
