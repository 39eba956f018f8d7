//! Classes of the package whose values are attributes: from one row for each attribute follow its
//! getter and its lines in the stub (`_weir.pyi`), which a test compares with this, and from the
//! stub the page `docs/reference/python.md`.

use pyo3::prelude::{Bound, PyAny, PyAnyMethods, PyResult};

/// The type of a value in Python's words.
pub(crate) trait Hint {
    fn hint() -> String;
}

macro_rules! hints {
    ($($hint:literal: $($type:ty),+;)+) => {
        $($(impl Hint for $type {
            fn hint() -> String {
                $hint.to_owned()
            }
        })+)+
    };
}

hints! {
    "int": u8, u16, u32, u64, usize;
    "bool": bool;
    "float": f64;
    "str": String, &str;
    "bytes": &[u8];
}

impl<T: Hint> Hint for Option<T> {
    fn hint() -> String {
        format!("Optional[{}]", T::hint())
    }
}

impl<T: Hint> Hint for Vec<T> {
    fn hint() -> String {
        format!("List[{}]", T::hint())
    }
}

/// An attribute: its name, its type, and the lines of its documentation.
pub(crate) type Attribute<'a> = (&'a str, String, &'a [&'a str]);

/// The stub of a class: its docstring, its attributes, and the text of its methods.
pub(crate) fn stub(name: &str, doc: &[&str], rows: &[Attribute<'_>], methods: &str) -> String {
    let mut text = format!("@final\nclass {name}:\n{}\n", docstring(doc, "    "));
    for (name, hint, doc) in rows {
        let name = name.trim_start_matches("r#");
        text += &format!("    @property\n    def {name}(self) -> {hint}:\n");
        text += &docstring(doc, "        ");
    }
    text + methods
}

/// The lines of a docstring behind a margin.
fn docstring(lines: &[&str], margin: &str) -> String {
    let lines: Vec<_> = lines.iter().map(|line| line.trim()).collect();
    format!("{margin}\"\"\"{}\"\"\"\n", lines.join(&format!("\n{margin}")))
}

/// A class's name, and its attributes with their values.
pub(crate) fn all_attributes(
    value: &Bound<'_, PyAny>,
    name: &str,
    attributes: &[&str],
) -> PyResult<String> {
    let words = attributes.iter().map(|attribute| {
        let attribute = attribute.trim_start_matches("r#");
        Ok(format!("{attribute}={}", value.getattr(attribute)?.repr()?))
    });
    Ok(format!("{name}({})", words.collect::<PyResult<Vec<_>>>()?.join(", ")))
}

/// The text of a value for people: all its attributes, or that of the class's own `repr`.
macro_rules! text_of {
    ($slf:ident, $name:ident, [$($row:ident),*]) => {
        crate::class::all_attributes($slf, stringify!($name), &[$(stringify!($row)),*])
    };
    ($slf:ident, $name:ident, [$($row:ident),*], $it:ident, $repr:expr) => {{
        let $it = $slf.get();
        Ok($repr)
    }};
}

/// Defines a class over a value `inner`, which `$it` is in the rows, or over fields, whose struct
/// it is then.
macro_rules! class {
    (
        $(#[doc = $doc:literal])*
        $name:ident($inner:ty) |$it:ident| { $($rows:tt)* } $($rest:tt)*
    ) => {
        crate::class::class! {
            @ [$(#[doc = $doc])*] $name { pub(crate) inner: $inner, }
            |this, $it| (this.inner) { $($rows)* } $($rest)*
        }
    };
    (
        $(#[doc = $doc:literal])*
        $name:ident { $($fields:tt)* } |$it:ident| { $($rows:tt)* } $($rest:tt)*
    ) => {
        crate::class::class! {
            @ [$(#[doc = $doc])*] $name { $($fields)* }
            |this, $it| (*this) { $($rows)* } $($rest)*
        }
    };
    (
        @ [$(#[doc = $doc:literal])*] $name:ident { $($fields:tt)* }
        |$this:ident, $it:ident| $base:tt
        { $($(#[doc = $row_doc:literal])* $row:ident: $type:ty = $value:expr;)* }
        $(repr |$repr_it:ident| $repr:expr;)?
        $(methods $stub:literal { $($methods:tt)* })?
    ) => {
        $(#[doc = $doc])*
        #[pyo3::pyclass(frozen, module = "weir")]
        pub(crate) struct $name { $($fields)* }

        #[pyo3::pymethods]
        impl $name {
            $(
                $(#[doc = $row_doc])*
                #[getter]
                pub(crate) fn $row(&self) -> $type {
                    let $this = self;
                    let $it = &$base;
                    $value
                }
            )*

            fn __repr__(slf: &pyo3::Bound<'_, Self>) -> pyo3::PyResult<String> {
                crate::class::text_of!(slf, $name, [$($row),*] $(, $repr_it, $repr)?)
            }

            $($($methods)*)?
        }

        impl $name {
            pub(crate) fn stub() -> String {
                let rows: &[crate::class::Attribute<'_>] = &[$((
                    stringify!($row),
                    <$type as crate::class::Hint>::hint(),
                    &[$($row_doc),*],
                )),*];
                crate::class::stub(stringify!($name), &[$($doc),*], rows, concat!($($stub)?))
            }
        }

        impl crate::class::Hint for $name {
            fn hint() -> String {
                stringify!($name).to_owned()
            }
        }
    };
}

pub(crate) use {class, text_of};
