//! Reading the text form: recursive descent over tokens, straight into a builder.

use super::lexer::{Lexer, Token, error};
use crate::outputs::MAX_DEPTH;
use crate::{
    Attributes, Body, BodyBuilder, IrError, Location, Material, OpKind, Position, Program,
    ProgramBuilder, Type, ValueId,
};
use fhelium_state::{Chain, Scale};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

impl Program {
    /// Reads the text form and verifies it.
    ///
    /// Errors name line and column; nothing panics, whatever the text.
    pub fn parse(text: &str) -> Result<Program, IrError> {
        Parser::new(text)?.program()
    }
}

/// The name of a value in a text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum ValueName<'t> {
    Numbered(u64),
    Named(Cow<'t, str>),
}

/// The values that a body defines, by name.
pub(super) type Scope<'t> = HashMap<ValueName<'t>, ValueId>;

/// Where operations go: the Program's body or a region.
enum Target<'a> {
    Program(&'a mut ProgramBuilder),
    Region(&'a mut BodyBuilder, &'a ProgramBuilder),
}

impl Target<'_> {
    fn type_of(&self, value: ValueId) -> Option<&Type> {
        match self {
            Target::Program(builder) => builder.type_of(value),
            Target::Region(body, _) => body.type_of(value),
        }
    }

    fn program(&self) -> &ProgramBuilder {
        match self {
            Target::Program(builder) => builder,
            Target::Region(_, builder) => builder,
        }
    }

    fn op(
        &mut self,
        kind: OpKind,
        operands: &[ValueId],
        attributes: &Attributes,
        location: Option<Location>,
        region: Option<Arc<Body>>,
    ) -> Result<&[ValueId], IrError> {
        match self {
            Target::Program(builder) => {
                builder.op_with_region(kind, operands, attributes, location, region)
            }
            Target::Region(body, builder) => body.op(
                &builder.context(),
                kind,
                operands,
                attributes,
                location,
                region,
            ),
        }
    }
}

pub(super) struct Parser<'t> {
    lexer: Lexer<'t>,
    /// The token to come and where it starts.
    ahead: (Token<'t>, Position),
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Result<Self, IrError> {
        let mut lexer = Lexer::new(text);
        let ahead = lexer.next()?;
        Ok(Parser { lexer, ahead })
    }

    pub(super) fn next(&mut self) -> Result<(Token<'t>, Position), IrError> {
        let ahead = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.ahead, ahead))
    }

    pub(super) fn peek(&self) -> &Token<'t> {
        &self.ahead.0
    }

    pub(super) fn position(&self) -> Position {
        self.ahead.1
    }

    /// Takes a mark if it comes next.
    pub(super) fn eat(&mut self, mark: char) -> Result<bool, IrError> {
        let found = self.ahead.0 == Token::Mark(mark);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    pub(super) fn mark(&mut self, mark: char) -> Result<(), IrError> {
        if self.eat(mark)? {
            return Ok(());
        }
        let (token, position) = &self.ahead;
        Err(error(
            *position,
            format!("expected '{mark}', found {token}"),
        ))
    }

    fn eat_keyword(&mut self, keyword: &str) -> Result<bool, IrError> {
        let found = self.ahead.0 == Token::Word(keyword);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    pub(super) fn keyword(&mut self, keyword: &str) -> Result<(), IrError> {
        if self.eat_keyword(keyword)? {
            return Ok(());
        }
        let (token, position) = &self.ahead;
        Err(error(
            *position,
            format!("expected '{keyword}', found {token}"),
        ))
    }

    pub(super) fn symbol(&mut self) -> Result<Cow<'t, str>, IrError> {
        match self.next()? {
            (Token::Symbol(name), _) => Ok(name),
            (token, position) => Err(error(position, format!("expected @name, found {token}"))),
        }
    }

    pub(super) fn string(&mut self) -> Result<String, IrError> {
        match self.next()? {
            (Token::Text(text), _) => Ok(text),
            (token, position) => Err(error(position, format!("expected a string, found {token}"))),
        }
    }

    fn program(mut self) -> Result<Program, IrError> {
        self.keyword("program")?;
        let name = self.symbol()?;
        self.mark('{')?;
        let mut chain = None;
        if self.eat_keyword("chain")? {
            chain = Some(Arc::new(self.chain()?));
        }
        let mut builder = ProgramBuilder::new(&*name, chain);
        while self.eat_keyword("material")? {
            let position = self.position();
            let symbol = self.symbol()?;
            self.mark(':')?;
            let ty = self.ty()?;
            let description = match self.peek() {
                Token::Text(_) => self.string()?,
                _ => String::new(),
            };
            builder
                .material(&*symbol, Material::new(ty, description))
                .map_err(|problem| problem.in_text(position))?;
        }
        self.keyword("func")?;
        let mut scope = Scope::new();
        self.inputs(&mut builder, &mut scope)?;
        self.mark('{')?;
        while !matches!(self.peek(), Token::Word("return")) {
            self.op(&mut Target::Program(&mut builder), &mut scope)?;
        }
        let position = self.position();
        self.keyword("return")?;
        let outputs = self.tree(&scope, MAX_DEPTH)?;
        self.mark('}')?;
        self.mark('}')?;
        let (token, end) = &self.ahead;
        if *token != Token::End {
            return Err(error(
                *end,
                format!("expected the end of the text, found {token}"),
            ));
        }
        builder
            .finish(&outputs)
            .map_err(|problem| problem.in_text(position))
    }

    fn chain(&mut self) -> Result<Chain, IrError> {
        let start = self.position();
        self.mark('{')?;
        let (mut log_n, mut moduli, mut special) = (None, None, None);
        let mut scale: Option<Scale> = None;
        while !self.eat('}')? {
            let (token, position) = self.next()?;
            self.mark('=')?;
            let twice = match token {
                Token::Word("log_n") => log_n.replace(self.integer("log_n")?).is_some(),
                Token::Word("scale") => scale.replace(self.scale()?).is_some(),
                Token::Word("moduli") => moduli.replace(self.integers("a prime")?).is_some(),
                Token::Word("special") => special.replace(self.integers("a prime")?).is_some(),
                token => {
                    return Err(error(
                        position,
                        format!("expected log_n, scale, moduli or special, found {token}"),
                    ));
                }
            };
            if twice {
                return Err(error(position, "the field is given twice"));
            }
            if !matches!(self.peek(), Token::Mark('}')) {
                self.mark(',')?;
            }
        }
        let (Some(log_n), Some(scale), Some(moduli)) = (log_n, scale, moduli) else {
            return Err(error(start, "a chain needs log_n, scale and moduli"));
        };
        let special = special.unwrap_or_default();
        crate::verify::check_chain(log_n, &moduli, &special, &scale)
            .map_err(|problem| problem.in_text(start))?;
        Ok(Chain::new(log_n, moduli, special, scale))
    }

    fn inputs(
        &mut self,
        builder: &mut ProgramBuilder,
        scope: &mut Scope<'t>,
    ) -> Result<(), IrError> {
        self.mark('(')?;
        while !self.eat(')')? {
            if !scope.is_empty() {
                self.mark(',')?;
            }
            let (token, position) = self.next()?;
            let Token::Value(name) = token else {
                return Err(error(
                    position,
                    format!("expected an input, %name: type, found {token}"),
                ));
            };
            self.mark(':')?;
            let ty = self.ty()?;
            let value = builder
                .input(&*name, ty)
                .map_err(|problem| problem.in_text(position))?;
            scope.insert(ValueName::Named(name), value);
        }
        Ok(())
    }

    /// The name of a value, where one comes next.
    fn value_name(&mut self) -> Result<Option<(ValueName<'t>, Position)>, IrError> {
        if !matches!(self.peek(), Token::Numbered(_) | Token::Value(_)) {
            return Ok(None);
        }
        Ok(match self.next()? {
            (Token::Numbered(number), position) => Some((ValueName::Numbered(number), position)),
            (Token::Value(name), position) => Some((ValueName::Named(name), position)),
            _ => None,
        })
    }

    pub(super) fn value(&mut self, scope: &Scope<'t>) -> Result<ValueId, IrError> {
        let Some((name, position)) = self.value_name()? else {
            let (token, position) = &self.ahead;
            return Err(error(*position, format!("expected a value, found {token}")));
        };
        scope.get(&name).copied().ok_or_else(|| {
            let name = match &name {
                ValueName::Numbered(number) => number.to_string(),
                ValueName::Named(name) => name.chars().take(40).collect(),
            };
            error(position, format!("the value %{name} is not defined before"))
        })
    }

    /// Values with commas between them, maybe none.
    fn values(&mut self, scope: &Scope<'t>) -> Result<Vec<ValueId>, IrError> {
        let mut values = Vec::new();
        if matches!(self.peek(), Token::Numbered(_) | Token::Value(_)) {
            values.push(self.value(scope)?);
            while self.eat(',')? {
                values.push(self.value(scope)?);
            }
        }
        Ok(values)
    }

    /// One operation: `%r, ... = name %x, ... {a = 1} : type, ... loc("file":1 in f)`.
    fn op(&mut self, target: &mut Target<'_>, scope: &mut Scope<'t>) -> Result<(), IrError> {
        let mut names = Vec::new();
        while let Some(name) = self.value_name()? {
            names.push(name);
            if !self.eat(',')? {
                break;
            }
        }
        if !names.is_empty() {
            self.mark('=')?;
        }
        let (token, position) = self.next()?;
        let Token::Word(word) = token else {
            return Err(error(
                position,
                format!("expected an operation, found {token}"),
            ));
        };
        let Some(kind) = OpKind::find(word) else {
            return Err(error(
                position,
                format!("the operation '{word:.40}' is unknown"),
            ));
        };
        let (operands, region) = if kind.def().has_region {
            self.mark('(')?;
            let operands = self.values(scope)?;
            self.mark(')')?;
            let region = self.region(target, &operands)?;
            (operands, Some(Arc::new(region)))
        } else {
            (self.values(scope)?, None)
        };
        let attributes = self.attributes(kind)?;
        let types = self.result_types()?;
        let location = self.location()?;
        let results = target
            .op(kind, &operands, &attributes, location, region)
            .map_err(|problem| problem.in_text(position))?
            .to_vec();
        if results.len() != names.len() {
            return Err(error(
                position,
                format!(
                    "{kind} gives {} results, {} are named",
                    results.len(),
                    names.len()
                ),
            ));
        }
        if let Some((types, position)) = types {
            let given = results.iter().map(|&result| target.type_of(result));
            if !given.clone().eq(types.iter().map(Some)) {
                let given: Vec<_> = given.flatten().map(Type::to_string).collect();
                return Err(error(
                    position,
                    format!(
                        "the results have other types than written: {}",
                        given.join(", ")
                    ),
                ));
            }
        }
        for ((name, position), result) in names.into_iter().zip(results) {
            if scope.insert(name, result).is_some() {
                return Err(error(position, "the value is defined already"));
            }
        }
        Ok(())
    }

    fn attributes(&mut self, kind: OpKind) -> Result<Attributes, IrError> {
        let mut attributes = Attributes::new();
        if !self.eat('{')? {
            return Ok(attributes);
        }
        while !self.eat('}')? {
            if !attributes.is_empty() {
                self.mark(',')?;
            }
            let (token, position) = self.next()?;
            let spec = match token {
                Token::Word(name) => kind.def().attribute(name),
                _ => None,
            };
            let Some(spec) = spec else {
                let known = kind.def().attributes.iter().map(|spec| spec.name);
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(error(
                    position,
                    format!("expected an attribute of {kind} ({known}), found {token}"),
                ));
            };
            self.mark('=')?;
            if attributes.get(spec.name).is_some() {
                return Err(error(position, "the attribute is given twice"));
            }
            attributes.set(spec.name, self.attribute(spec.kind)?);
        }
        Ok(attributes)
    }

    fn result_types(&mut self) -> Result<Option<(Vec<Type>, Position)>, IrError> {
        if !self.eat(':')? {
            return Ok(None);
        }
        let position = self.position();
        let mut types = vec![self.ty()?];
        while self.eat(',')? {
            types.push(self.ty()?);
        }
        Ok(Some((types, position)))
    }

    fn location(&mut self) -> Result<Option<Location>, IrError> {
        if !self.eat_keyword("loc")? {
            return Ok(None);
        }
        self.mark('(')?;
        let file = self.string()?;
        self.mark(':')?;
        let line = self.integer("a line")?;
        let mut function = String::new();
        if self.eat_keyword("in")? {
            function = match self.next()? {
                (Token::Word(name), _) => name.to_owned(),
                (Token::Text(name), _) => name,
                (token, position) => {
                    return Err(error(
                        position,
                        format!("expected a function's name, found {token}"),
                    ));
                }
            };
        }
        self.mark(')')?;
        Ok(Some(Location::new(file, line, function)))
    }

    /// `{ (%x, %y): operations yield %z }`; the arguments have the operands' types.
    fn region(&mut self, outer: &mut Target<'_>, operands: &[ValueId]) -> Result<Body, IrError> {
        let start = self.position();
        if matches!(outer, Target::Region(..)) {
            return Err(error(start, "regions do not nest"));
        }
        self.mark('{')?;
        self.mark('(')?;
        let mut body = BodyBuilder::new();
        let mut scope = Scope::new();
        for &operand in operands {
            if !scope.is_empty() {
                self.mark(',')?;
            }
            let position = self.position();
            let (Some((name, _)), Some(ty)) = (self.value_name()?, outer.type_of(operand)) else {
                return Err(error(
                    position,
                    format!(
                        "expected the name of an argument: the region takes {}",
                        operands.len()
                    ),
                ));
            };
            let value = body.argument(ty.clone())?;
            if scope.insert(name, value).is_some() {
                return Err(error(position, "the value is defined already"));
            }
        }
        self.mark(')')?;
        self.mark(':')?;
        while !matches!(self.peek(), Token::Word("yield")) {
            let mut target = Target::Region(&mut body, outer.program());
            self.op(&mut target, &mut scope)?;
        }
        let position = self.position();
        self.keyword("yield")?;
        let results = self.values(&scope)?;
        self.mark('}')?;
        body.finish(&results)
            .map_err(|problem| problem.in_text(position))
    }
}

impl std::str::FromStr for Program {
    type Err = IrError;

    fn from_str(text: &str) -> Result<Self, IrError> {
        Program::parse(text)
    }
}
