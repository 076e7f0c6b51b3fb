//! Reading what a Program returns.

use super::lexer::{Token, error};
use super::parser::{Parser, Scope};
use crate::outputs::MAX_DEPTH;
use crate::{IrError, OutputTree, ValueId};

impl<'t> Parser<'t> {
    /// What is returned: values and constants in at most `depth` containers.
    pub(super) fn tree(
        &mut self,
        scope: &Scope<'t>,
        depth: usize,
    ) -> Result<OutputTree<ValueId>, IrError> {
        let position = self.position();
        if let Some(literal) = self.literal()? {
            return Ok(OutputTree::Literal(literal));
        }
        if matches!(self.peek(), Token::Numbered(_) | Token::Value(_)) {
            return Ok(OutputTree::Value(self.value(scope)?));
        }
        let Some(depth) = depth.checked_sub(1) else {
            return Err(error(
                position,
                format!("the returned structure nests deeper than {MAX_DEPTH}"),
            ));
        };
        if self.eat('(')? {
            return self.tuple(scope, depth);
        }
        if self.eat('[')? {
            let mut items = Vec::new();
            while !self.eat(']')? {
                if !items.is_empty() {
                    self.mark(',')?;
                }
                items.push(self.tree(scope, depth)?);
            }
            return Ok(OutputTree::List(items));
        }
        if self.eat('{')? {
            let mut items = Vec::new();
            while !self.eat('}')? {
                if !items.is_empty() {
                    self.mark(',')?;
                }
                let Some(key) = self.literal()? else {
                    let (token, position) = (self.peek(), self.position());
                    return Err(error(
                        position,
                        format!("expected the key of a dict, found {token}"),
                    ));
                };
                self.mark(':')?;
                items.push((key, self.tree(scope, depth)?));
            }
            return Ok(OutputTree::Dict(items));
        }
        let token = self.peek();
        Err(error(
            position,
            format!("expected a value, a constant, a tuple, list or dict to return, found {token}"),
        ))
    }

    /// A tuple after its parenthesis: `()`, `(a,)`, `(a, b)`.
    fn tuple(&mut self, scope: &Scope<'t>, depth: usize) -> Result<OutputTree<ValueId>, IrError> {
        let mut items = Vec::new();
        while !self.eat(')')? {
            items.push(self.tree(scope, depth)?);
            if items.len() == 1 || !matches!(self.peek(), Token::Mark(')')) {
                self.mark(',')?;
            }
        }
        Ok(OutputTree::Tuple(items))
    }
}
