//! Markup of the page and of drawings, in which every text from outside is escaped.
//!
//! It must never let a text become markup: only `markup!` makes any, from a template in the source,
//! and whatever it puts in that is not markup itself loses its signs.

use std::borrow::Cow;

/// Text with tags.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Markup(String);

impl Markup {
    /// The template of `markup!` with its pieces, which are markup.
    pub(crate) fn made(text: String) -> Self {
        Self(text)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text.
    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

impl FromIterator<Markup> for Markup {
    fn from_iter<I: IntoIterator<Item = Markup>>(pieces: I) -> Self {
        Self(pieces.into_iter().map(|piece| piece.0).collect())
    }
}

impl std::ops::AddAssign for Markup {
    fn add_assign(&mut self, other: Self) {
        self.0 += &other.0;
    }
}

/// A template with its places filled in: `markup!("<b title=\"{}\">{}</b>", why, text)`.
macro_rules! markup {
    ($template:literal $(, $piece:expr)* $(,)?) => {
        $crate::present::markup::Markup::made(format!(
            $template $(, $crate::present::markup::Piece::escaped(&$piece))*
        ))
    };
}
pub(crate) use markup;

/// Content of a place in a template.
pub(crate) trait Piece {
    /// It as markup.
    fn escaped(&self) -> Cow<'_, str>;
}

impl Piece for Markup {
    fn escaped(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }
}

impl<P: Piece> Piece for Option<P> {
    fn escaped(&self) -> Cow<'_, str> {
        self.as_ref().map_or(Cow::Borrowed(""), Piece::escaped)
    }
}

impl<P: Piece + ?Sized> Piece for &P {
    fn escaped(&self) -> Cow<'_, str> {
        (**self).escaped()
    }
}

impl Piece for String {
    fn escaped(&self) -> Cow<'_, str> {
        self.as_str().escaped()
    }
}

impl Piece for usize {
    fn escaped(&self) -> Cow<'_, str> {
        Cow::Owned(self.to_string())
    }
}

/// A place in a drawing: one decimal is less than any screen shows.
impl Piece for f64 {
    fn escaped(&self) -> Cow<'_, str> {
        let text = format!("{self:.1}");
        Cow::Owned(text.strip_suffix(".0").map_or(text.clone(), str::to_owned))
    }
}

/// The five signs of HTML become references, and what neither HTML nor XML may hold is replaced.
impl Piece for str {
    fn escaped(&self) -> Cow<'_, str> {
        let mut out = String::with_capacity(self.len());
        for letter in self.chars() {
            match letter {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                letter if letter.is_control() && !letter.is_whitespace() => out.push('\u{fffd}'),
                letter => out.push(letter),
            }
        }
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::Markup;

    #[test]
    fn no_sign_of_a_text_means_anything() {
        let text = "<a b=\"c\" d='e'>&amp;\0\u{1b}[1m";
        let bold = markup!("<b>{}</b>", text);
        let escaped = "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;amp;\u{fffd}\u{fffd}[1m";
        assert_eq!(bold, Markup(format!("<b>{escaped}</b>")));
        let nested = markup!("<i class=\"{}\">{}{}{}</i>", "x", bold, 1.26, 3_usize);
        assert_eq!(nested.into_text(), format!("<i class=\"x\"><b>{escaped}</b>1.33</i>"));
    }
}
