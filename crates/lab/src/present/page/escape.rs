//! Texts from outside in HTML.
//!
//! It must never let a text become markup, in an element or in a quoted attribute.

/// The text with the five signs of HTML written as references.
#[must_use]
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // A NUL is an error of its own in HTML.
            '\0' => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// JSON inside a script element: no `<`, so that neither `</script>` nor `<!--` can stand in it.
#[must_use]
pub(crate) fn script_json(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::{escape, script_json};

    #[test]
    fn no_sign_means_anything() {
        assert_eq!(
            escape("<a b=\"c\" d='e'>&amp;\0"),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;amp;\u{fffd}"
        );
    }

    #[test]
    fn json_in_a_script_is_the_same_json() {
        let text = serde_json::to_string(&["</script><!-- <script>"]).unwrap();
        let inside = script_json(&text);
        assert!(!inside.contains('<'));
        let read: Vec<String> = serde_json::from_str(&inside).unwrap();
        assert_eq!(read, ["</script><!-- <script>"]);
    }
}
