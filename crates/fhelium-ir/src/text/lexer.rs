//! Tokens of the text form.

use crate::{IrError, Position};
use fhelium_state::ErrorKind;
use std::borrow::Cow;
use std::fmt;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// A keyword, an operation's name, an attribute's name.
    Word(&'t str),
    /// A number as it is written.
    Number(&'t str),
    /// A string without its quotes and escapes.
    Text(String),
    /// `%3`: a value without a name.
    Numbered(u64),
    /// `%x` or `%"x"`.
    Value(Cow<'t, str>),
    /// `@x` or `@"x"`.
    Symbol(Cow<'t, str>),
    /// Punctuation.
    Mark(char),
    /// The end of the text.
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Long names are cut: an error message is a line.
        let cut = |text: &str| text.chars().take(40).collect::<String>();
        match self {
            Token::Word(text) | Token::Number(text) => write!(f, "'{}'", cut(text)),
            Token::Text(text) => write!(f, "the string {:?}", cut(text)),
            Token::Numbered(number) => write!(f, "'%{number}'"),
            Token::Value(name) => write!(f, "'%{}'", cut(name)),
            Token::Symbol(name) => write!(f, "'@{}'", cut(name)),
            Token::Mark(mark) => write!(f, "'{mark}'"),
            Token::End => f.write_str("the end of the text"),
        }
    }
}

/// A syntax error at a place.
pub(super) fn error(position: Position, message: impl Into<String>) -> IrError {
    IrError::new(ErrorKind::Serialization, message).in_text(position)
}

/// Reads tokens one by one.
pub(super) struct Lexer<'t> {
    rest: &'t str,
    position: Position,
}

fn is_name_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-')
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Lexer {
            rest: text,
            position: Position { line: 1, column: 1 },
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes the text up to the first character that does not belong, on one line.
    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|character| !belongs(character));
        let (taken, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.position.column += taken.chars().count();
        self.rest = rest;
        taken
    }

    fn bump(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.rest = &self.rest[character.len_utf8()..];
        if character == '\n' {
            self.position.line += 1;
            self.position.column = 1;
        } else {
            self.position.column += 1;
        }
        Some(character)
    }

    fn skip_blanks(&mut self) {
        while let Some(character) = self.peek() {
            if character.is_whitespace() {
                self.bump();
            } else if self.rest.starts_with("//") {
                self.take_while(|character| character != '\n');
            } else {
                break;
            }
        }
    }

    /// The next token and where it starts.
    pub(super) fn next(&mut self) -> Result<(Token<'t>, Position), IrError> {
        self.skip_blanks();
        let start = self.position;
        let Some(first) = self.peek() else {
            return Ok((Token::End, start));
        };
        let token = match first {
            '"' => Token::Text(self.string()?),
            '%' => {
                self.bump();
                match self.peek() {
                    Some(digit) if digit.is_ascii_digit() => {
                        let digits = self.take_while(|character| character.is_ascii_digit());
                        let number = digits.parse().map_err(|_| {
                            error(
                                start,
                                format!("the number of a value is too large: {digits:.40}"),
                            )
                        })?;
                        Token::Numbered(number)
                    }
                    _ => Token::Value(self.name(start, "%")?),
                }
            }
            '@' => {
                self.bump();
                Token::Symbol(self.name(start, "@")?)
            }
            '-' => self.number(start)?,
            digit if digit.is_ascii_digit() => self.number(start)?,
            letter if letter.is_ascii_alphabetic() || letter == '_' => {
                Token::Word(self.take_while(is_name_part))
            }
            '{' | '}' | '(' | ')' | '[' | ']' | '<' | '>' | ',' | ':' | '=' | '^' | '*' | '!' => {
                self.bump();
                Token::Mark(first)
            }
            other => {
                return Err(error(
                    start,
                    format!("the character {other:?} has no meaning here"),
                ));
            }
        };
        Ok((token, start))
    }

    /// A name after its mark.
    fn name(&mut self, start: Position, mark: &str) -> Result<Cow<'t, str>, IrError> {
        match self.peek() {
            Some('"') => Ok(Cow::Owned(self.string()?)),
            Some(letter) if letter.is_ascii_alphabetic() || letter == '_' => {
                Ok(Cow::Borrowed(self.take_while(is_name_part)))
            }
            _ => Err(error(start, format!("a name must follow {mark}"))),
        }
    }

    /// Digits with an optional sign, fraction and exponent, or `-inf`.
    fn number(&mut self, start: Position) -> Result<Token<'t>, IrError> {
        let bytes = self.rest.as_bytes();
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        let sign = usize::from(bytes[0] == b'-');
        if sign == 1 && self.rest[1..].starts_with("inf") {
            return Ok(Token::Number(self.take(4)));
        }
        let mut end = digits(sign);
        if end == sign {
            return Err(error(start, "a number must follow '-'"));
        }
        if bytes.get(end) == Some(&b'.') {
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + signed);
            if exponent > end + 1 + signed {
                end = exponent;
            }
        }
        Ok(Token::Number(self.take(end)))
    }

    /// Takes ASCII text on one line.
    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(length);
        self.position.column += length;
        self.rest = rest;
        taken
    }

    /// A string from its opening quote on.
    fn string(&mut self) -> Result<String, IrError> {
        let start = self.position;
        self.bump();
        let mut text = String::new();
        loop {
            text.extend(Some(
                self.take_while(|character| !matches!(character, '"' | '\\' | '\n')),
            ));
            let place = self.position;
            match self.bump() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escape(place)?),
                _ => return Err(error(start, "the string does not end on its line")),
            }
        }
    }

    fn escape(&mut self, start: Position) -> Result<char, IrError> {
        match self.bump() {
            Some('"') => Ok('"'),
            Some('\\') => Ok('\\'),
            Some('n') => Ok('\n'),
            Some('t') => Ok('\t'),
            Some('r') => Ok('\r'),
            Some('u') if self.peek() == Some('{') => {
                self.bump();
                let digits = self.take_while(|character| character.is_ascii_hexdigit());
                let scalar = u32::from_str_radix(digits, 16)
                    .ok()
                    .and_then(char::from_u32);
                match (self.bump(), scalar) {
                    (Some('}'), Some(scalar)) => Ok(scalar),
                    _ => Err(error(
                        start,
                        "\\u{...} needs the number of a character in hexadecimal",
                    )),
                }
            }
            _ => Err(error(
                start,
                "the escape is unknown, expected \\\" \\\\ \\n \\t \\r or \\u{...}",
            )),
        }
    }
}
