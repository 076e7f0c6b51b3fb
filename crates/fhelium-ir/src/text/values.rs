//! Reading types, attributes and constants.

use super::lexer::{Token, error};
use super::parser::Parser;
use crate::{
    Attribute, AttributeKind, Basis, DType, Domain, IrError, KeyKind, Literal, Position, Real, Type,
};
use fhelium_state::{CipherState, PlainState, Scale};
use std::str::FromStr;

/// The most factors of one scale: a chain has far fewer primes.
const MAX_FACTORS: usize = 1024;

impl<'t> Parser<'t> {
    /// An integer of any Rust type.
    pub(super) fn integer<T: FromStr>(&mut self, what: &str) -> Result<T, IrError> {
        let (token, position) = self.next()?;
        if let Token::Number(digits) = token {
            if let Ok(value) = digits.parse() {
                return Ok(value);
            }
            return Err(error(
                position,
                format!("{digits:.40} is out of range for {what}, or not whole"),
            ));
        }
        Err(error(
            position,
            format!("expected {what}, an integer, found {token}"),
        ))
    }

    /// `[a, b, c]` of integers.
    pub(super) fn integers<T: FromStr>(&mut self, what: &str) -> Result<Vec<T>, IrError> {
        self.mark('[')?;
        let mut items = Vec::new();
        while !self.eat(']')? {
            if !items.is_empty() {
                self.mark(',')?;
            }
            items.push(self.integer(what)?);
        }
        Ok(items)
    }

    /// `2^80*1099511922689^-1`.
    pub(super) fn scale(&mut self) -> Result<Scale, IrError> {
        let start = self.position();
        let mut text = String::new();
        for factor in 0.. {
            if factor > 0 {
                if !self.eat('*')? {
                    break;
                }
                text.push('*');
            }
            if factor >= MAX_FACTORS {
                return Err(error(start, "the scale has too many factors"));
            }
            text += self.digits("a scale")?;
            if self.eat('^')? {
                text.push('^');
                text += self.digits("the exponent of a scale")?;
            }
        }
        text.parse()
            .map_err(|problem: fhelium_state::ParseScaleError| error(start, problem.to_string()))
    }

    fn digits(&mut self, what: &str) -> Result<&'t str, IrError> {
        match self.next()? {
            (Token::Number(digits), _) => Ok(digits),
            (token, position) => Err(error(position, format!("expected {what}, found {token}"))),
        }
    }

    /// A float, or an integer where one was written.
    fn number(&mut self) -> Result<Attribute, IrError> {
        let (token, position) = self.next()?;
        let digits = match token {
            Token::Number(digits) => digits,
            Token::Word(word @ ("nan" | "inf")) => word,
            token => return Err(error(position, format!("expected a number, found {token}"))),
        };
        let whole = digits
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_digit());
        if whole {
            return match digits.parse() {
                Ok(value) => Ok(Attribute::Int(value)),
                Err(_) => Err(error(
                    position,
                    format!("{digits:.40} is out of range; write it with a point for a float"),
                )),
            };
        }
        match digits.parse::<f64>() {
            Ok(value) => Ok(Attribute::Float(Real::new(value))),
            Err(_) => Err(error(position, format!("{digits:.40} is no number"))),
        }
    }

    /// The parts of `complex(1.0, 2.0)` after the word.
    fn complex(&mut self) -> Result<(Real, Real), IrError> {
        self.mark('(')?;
        let real = self.float()?;
        self.mark(',')?;
        let imaginary = self.float()?;
        self.mark(')')?;
        Ok((real, imaginary))
    }

    fn float(&mut self) -> Result<Real, IrError> {
        let position = self.position();
        match self.number()? {
            Attribute::Float(value) => Ok(value),
            other => Err(error(
                position,
                format!("expected a float, found the integer {other}"),
            )),
        }
    }

    /// An attribute's value.
    pub(super) fn attribute(&mut self, kind: AttributeKind) -> Result<Attribute, IrError> {
        Ok(match kind {
            AttributeKind::Bool => Attribute::Bool(self.truth()?),
            AttributeKind::Int => Attribute::Int(self.integer("the attribute")?),
            AttributeKind::Ints => Attribute::Ints(self.integers("an element of the attribute")?),
            AttributeKind::Number => match self.peek() {
                Token::Word("true" | "false") => Attribute::Bool(self.truth()?),
                Token::Word("complex") => {
                    self.next()?;
                    let (real, imaginary) = self.complex()?;
                    Attribute::Complex(real, imaginary)
                }
                _ => self.number()?,
            },
            AttributeKind::Symbol => Attribute::Symbol(self.symbol()?.into()),
            AttributeKind::Scale => Attribute::Scale(self.scale()?),
            AttributeKind::DType => Attribute::DType(self.dtype()?),
        })
    }

    fn truth(&mut self) -> Result<bool, IrError> {
        match self.next()? {
            (Token::Word("true"), _) => Ok(true),
            (Token::Word("false"), _) => Ok(false),
            (token, position) => Err(error(
                position,
                format!("expected true or false, found {token}"),
            )),
        }
    }

    fn dtype(&mut self) -> Result<DType, IrError> {
        let (token, position) = self.next()?;
        if let Token::Word(word) = token
            && let Ok(dtype) = word.parse()
        {
            return Ok(dtype);
        }
        let known = DType::ALL.map(DType::name).join(", ");
        Err(error(
            position,
            format!("expected an element type ({known}), found {token}"),
        ))
    }

    /// A constant of an output tree; `None` where something else follows.
    pub(super) fn literal(&mut self) -> Result<Option<Literal>, IrError> {
        Ok(Some(match self.peek() {
            Token::Word("none") => {
                self.next()?;
                Literal::None
            }
            Token::Word("true" | "false") => Literal::Bool(self.truth()?),
            Token::Word("complex") => {
                self.next()?;
                let (real, imaginary) = self.complex()?;
                Literal::Complex(real, imaginary)
            }
            Token::Text(_) => Literal::Str(self.string()?),
            Token::Number(digits)
                if digits
                    .bytes()
                    .all(|byte| byte == b'-' || byte.is_ascii_digit()) =>
            {
                Literal::Int(self.integer("an integer")?)
            }
            Token::Number(_) | Token::Word("nan" | "inf") => Literal::Float(self.float()?),
            _ => return Ok(None),
        }))
    }

    /// `!ciphertext<[6], level=3, scale=2^40, parts=2>` and its kin.
    pub(super) fn ty(&mut self) -> Result<Type, IrError> {
        self.mark('!')?;
        let (token, position) = self.next()?;
        self.mark('<')?;
        let ty = match token {
            Token::Word("ciphertext") => {
                let batch = self.integers("an extent")?;
                let mut state = None;
                if self.eat(',')? {
                    let level = self.field("level")?;
                    self.mark(',')?;
                    let scale = self.scale_field()?;
                    self.mark(',')?;
                    let parts = self.field("parts")?;
                    state = Some(CipherState {
                        level,
                        scale,
                        parts,
                    });
                }
                Type::Ciphertext { batch, state }
            }
            Token::Word("plaintext") => {
                let batch = self.integers("an extent")?;
                let mut state = None;
                if self.eat(',')? {
                    let level = self.field("level")?;
                    self.mark(',')?;
                    let scale = self.scale_field()?;
                    state = Some(PlainState { level, scale });
                }
                Type::Plaintext { batch, state }
            }
            Token::Word("tensor") => {
                let dtype = self.dtype()?;
                self.mark(',')?;
                let shape = self.integers("an extent")?;
                Type::Tensor { dtype, shape }
            }
            Token::Word("key") => Type::Key(self.key_kind()?),
            Token::Word("residues") => {
                let batch = self.integers("an extent")?;
                self.mark(',')?;
                let parts = self.field("parts")?;
                self.mark(',')?;
                self.keyword("basis")?;
                self.mark('=')?;
                let basis = self.basis()?;
                self.mark(',')?;
                self.keyword("domain")?;
                self.mark('=')?;
                let domain = self.domain()?;
                Type::Residues {
                    batch,
                    parts,
                    basis,
                    domain,
                }
            }
            token => {
                return Err(error(
                    position,
                    format!(
                        "expected a type (ciphertext, plaintext, tensor, key or residues), found \
                         {token}"
                    ),
                ));
            }
        };
        self.mark('>')?;
        Ok(ty)
    }

    /// `name=3`.
    fn field(&mut self, name: &'static str) -> Result<usize, IrError> {
        self.keyword(name)?;
        self.mark('=')?;
        self.integer(name)
    }

    fn scale_field(&mut self) -> Result<Scale, IrError> {
        self.keyword("scale")?;
        self.mark('=')?;
        self.scale()
    }

    fn key_kind(&mut self) -> Result<KeyKind, IrError> {
        match self.next()? {
            (Token::Word("relinearization"), _) => Ok(KeyKind::Relinearization),
            (Token::Word("conjugation"), _) => Ok(KeyKind::Conjugation),
            (Token::Word("rotation"), _) => Ok(KeyKind::Rotation {
                step: self.integer("a rotation's step")?,
            }),
            (token, position) => Err(error(
                position,
                format!("expected relinearization, rotation STEP or conjugation, found {token}"),
            )),
        }
    }

    fn basis(&mut self) -> Result<Basis, IrError> {
        let (token, position) = self.next()?;
        self.mark('(')?;
        let level = self.integer("a level")?;
        let basis = match token {
            Token::Word("Q") => Basis::Q { level },
            Token::Word("QP") => Basis::QP { level },
            Token::Word("digit") => {
                self.mark(',')?;
                let start = self.integer("the first prime")?;
                self.mark(',')?;
                let end = self.integer("the end of the primes")?;
                Basis::Digit { level, start, end }
            }
            token => return Err(unknown_basis(position, &token)),
        };
        self.mark(')')?;
        Ok(basis)
    }

    fn domain(&mut self) -> Result<Domain, IrError> {
        match self.next()? {
            (Token::Word("coefficient"), _) => Ok(Domain::Coefficient),
            (Token::Word("ntt"), _) => Ok(Domain::Ntt),
            (token, position) => Err(error(
                position,
                format!("expected coefficient or ntt, found {token}"),
            )),
        }
    }
}

fn unknown_basis(position: Position, token: &Token<'_>) -> IrError {
    error(
        position,
        format!("expected Q(level), QP(level) or digit(level, start, end), found {token}"),
    )
}
