//! What can be saved.

use crate::engine::{Carrier, ToHost};
use crate::placed::{Ciphertext, KeySwitchKey, Plaintext, PublicKey, SecretKey};
use crate::{EvaluationKeys, KeySet, RuntimeError};
use fhelium_ckks::Parameters;
use fhelium_ir::Program;
use fhelium_passes::Compilation;
use std::fmt;

/// Something that a file holds, values and keys with their parameters.
#[derive(Clone, Debug)]
pub enum Object {
    /// A parameter set.
    Parameters(Parameters),
    /// A ciphertext, batched or not.
    Ciphertext(Ciphertext, Parameters),
    /// A plaintext, batched or not.
    Plaintext(Plaintext, Parameters),
    /// A secret key.
    SecretKey(SecretKey, Parameters),
    /// A public key.
    PublicKey(PublicKey, Parameters),
    /// One key for relinearization, rotation or conjugation.
    EvaluationKey(KeySwitchKey, Parameters),
    /// Keys without the secret.
    EvaluationKeys(EvaluationKeys, Parameters),
    /// Keys with the secret.
    KeySet(KeySet, Parameters),
    /// A Program.
    Program(Program),
    /// A Program with its materials' data, plans and reports; its workspace is left out.
    Compilation(Compilation),
}

impl Object {
    /// The same in host memory, as files hold it.
    pub(super) fn to_host(&self) -> Result<Object, RuntimeError> {
        Ok(match self {
            Object::Ciphertext(value, parameters) => {
                Object::Ciphertext(ToHost(parameters).carry(value)?, parameters.clone())
            }
            Object::Plaintext(value, parameters) => {
                Object::Plaintext(ToHost(parameters).carry(value)?, parameters.clone())
            }
            Object::SecretKey(key, parameters) => {
                Object::SecretKey(ToHost(parameters).carry(key)?, parameters.clone())
            }
            Object::PublicKey(key, parameters) => {
                Object::PublicKey(ToHost(parameters).carry(key)?, parameters.clone())
            }
            Object::EvaluationKey(key, parameters) => {
                Object::EvaluationKey(ToHost(parameters).carry(key)?, parameters.clone())
            }
            Object::EvaluationKeys(keys, parameters) => {
                Object::EvaluationKeys(ToHost(parameters).carry_keys(keys)?, parameters.clone())
            }
            Object::KeySet(keys, parameters) => {
                Object::KeySet(ToHost(parameters).carry_key_set(keys)?, parameters.clone())
            }
            // A compilation's materials are taken one by one.
            Object::Parameters(_) | Object::Program(_) | Object::Compilation(_) => self.clone(),
        })
    }
}

/// What kind of object a file holds. `Display` gives the name, such as `evaluation keys`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// [`Object::Parameters`].
    Parameters,
    /// [`Object::Ciphertext`].
    Ciphertext,
    /// [`Object::Plaintext`].
    Plaintext,
    /// [`Object::SecretKey`].
    SecretKey,
    /// [`Object::PublicKey`].
    PublicKey,
    /// [`Object::EvaluationKey`].
    EvaluationKey,
    /// [`Object::EvaluationKeys`].
    EvaluationKeys,
    /// [`Object::KeySet`].
    KeySet,
    /// [`Object::Program`].
    Program,
    /// [`Object::Compilation`].
    Compilation,
    /// An entry of the [compile cache](super::CompileCache), which nothing else reads.
    CacheEntry,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 11] = [
        Kind::Parameters,
        Kind::Ciphertext,
        Kind::Plaintext,
        Kind::SecretKey,
        Kind::PublicKey,
        Kind::EvaluationKey,
        Kind::EvaluationKeys,
        Kind::KeySet,
        Kind::Program,
        Kind::Compilation,
        Kind::CacheEntry,
    ];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Parameters => "parameters",
            Kind::Ciphertext => "ciphertext",
            Kind::Plaintext => "plaintext",
            Kind::SecretKey => "secret key",
            Kind::PublicKey => "public key",
            Kind::EvaluationKey => "evaluation key",
            Kind::EvaluationKeys => "evaluation keys",
            Kind::KeySet => "key set",
            Kind::Program => "program",
            Kind::Compilation => "compilation",
            Kind::CacheEntry => "compile cache entry",
        }
    }

    /// The kind of a name in a file.
    pub fn from_name(name: &str) -> Option<Self> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The name with its article, for messages.
    pub fn noun(self) -> String {
        let name = self.name();
        match self {
            Kind::Parameters | Kind::EvaluationKeys => name.to_owned(),
            Kind::EvaluationKey => format!("an {name}"),
            _ => format!("a {name}"),
        }
    }

    /// Whether objects of this kind hold a secret.
    pub fn is_secret(self) -> bool {
        matches!(self, Kind::SecretKey | Kind::KeySet)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Object {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Object::Parameters(_) => Kind::Parameters,
            Object::Ciphertext(..) => Kind::Ciphertext,
            Object::Plaintext(..) => Kind::Plaintext,
            Object::SecretKey(..) => Kind::SecretKey,
            Object::PublicKey(..) => Kind::PublicKey,
            Object::EvaluationKey(..) => Kind::EvaluationKey,
            Object::EvaluationKeys(..) => Kind::EvaluationKeys,
            Object::KeySet(..) => Kind::KeySet,
            Object::Program(_) => Kind::Program,
            Object::Compilation(_) => Kind::Compilation,
        }
    }
}
