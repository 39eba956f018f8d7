//! The settings in `docs/apps.md` are taken, and every app stands there.

use controller::apps::{AppConfig, AppName, Print, ReadyApps};
use std::sync::Arc;

const PAGE: &str = include_str!("../../../../../docs/apps.md");

/// The blocks of TOML in the page.
fn blocks() -> Vec<&'static str> {
    let parts = PAGE.split("```toml\n").skip(1);
    parts.map(|part| part.split("```").next().unwrap()).collect()
}

#[test]
fn every_example_of_settings_is_taken() {
    let sections: Vec<_> = AppName::ALL.iter().map(|name| name.text()).collect();
    let of_apps = blocks().into_iter().filter(|block| {
        sections.iter().any(|section| {
            block.contains(&format!("[{section}]")) || block.contains(&format!("[[{section}."))
        })
    });
    let of_apps: Vec<_> = of_apps.collect();
    assert!(of_apps.len() >= 6, "{of_apps:?}");
    for block in of_apps {
        AppConfig::parse(block).unwrap_or_else(|error| panic!("{error} in\n{block}"));
    }
}

#[test]
fn every_app_has_a_line() {
    for name in AppName::ALL {
        let line = format!("| `{}` |", name.text());
        assert!(PAGE.contains(&line), "{line} is not in docs/apps.md");
    }
}

#[test]
fn apps_that_cannot_be_made_say_why() {
    let print: Print = Arc::new(|_| {});
    let made = |names: &[AppName]| {
        let ready = ReadyApps::new(names, &AppConfig::default(), &print);
        ready.map(drop).map_err(|error| error.to_string())
    };
    assert!(made(&[AppName::Router]).unwrap_err().contains("[router]"));
    assert!(made(&[AppName::Hub, AppName::Hub]).unwrap_err().contains("hub is named twice"));
    let behind = made(&[AppName::ShortestPath, AppName::Discovery]).unwrap_err();
    assert!(behind.contains("before shortest-path"), "{behind}");
    assert_eq!(made(&[AppName::Discovery, AppName::ShortestPath]), Ok(()));
    assert_eq!(made(&[AppName::ShortestPath]), Ok(()));
}
