//! The OpenAPI document, drawn from the rows of the endpoints and of their bodies.
//!
//! It is served at `/openapi.json`, and a tool that makes requests from it (Schemathesis does, in
//! the test command) finds every endpoint, every key and every answer announced. It must never be
//! written by hand.

use crate::app_routes::{self, AppRoute};
use crate::problem::Problem;
use crate::route::{Body, PARTS, Row};
use crate::shape::Schemas;
use serde_json::{Map, Value, json};

/// The document for these rows and the endpoints of apps; `with_token` when requests need one.
pub(crate) fn document(rows: &[Row], apps: &[AppRoute], with_token: bool) -> Value {
    let mut schemas = Schemas::new();
    schemas.insert("problem".into(), Problem::schema());
    let mut paths = Map::new();
    for row in rows {
        let item = paths.entry(row.path).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(item) = item {
            item.insert(row.method.as_str().to_lowercase(), operation(row, &mut schemas));
        }
    }
    app_routes::announce(apps, &mut paths);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Weir's controller",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The endpoints of Ryu's REST apps. A change is answered when the \
                switch has done it, or with its error; statistics are whole. Bodies are JSON, or \
                Python literals as Ryu took them.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas},
    });
    if with_token {
        document["components"]["securitySchemes"] =
            json!({"token": {"type": "http", "scheme": "bearer"}});
        document["security"] = json!([{"token": []}]);
    }
    document
}

fn operation(row: &Row, schemas: &mut Schemas) -> Value {
    let problem = json!({
        "description": "It is not done; the body says why.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/problem"}}},
    });
    let mut done = json!({"description": "It is done."});
    if row.answers {
        done["content"] = json!({"application/json": {"schema": {"type": ["object", "array"]}}});
    }
    let mut operation = json!({
        "summary": row.what,
        "operationId": format!("{} {}", row.method, row.path),
        "parameters": parameters(row),
        "responses": {"200": done, "default": problem},
    });
    let (shape, required) = match row.body {
        Body::None => return operation,
        Body::May(shape) => (shape, false),
        Body::Must(shape) => (shape, true),
    };
    // What a body of GET means is not defined; it is taken, as Ryu took it, but not announced.
    if row.method != axum::http::Method::GET {
        operation["requestBody"] = json!({
            "required": required,
            "content": {"application/json": {"schema": shape.schema(schemas)}},
        });
    }
    operation
}

fn parameters(row: &Row) -> Vec<Value> {
    let names = row.path.split('/').filter_map(|word| word.strip_prefix('{')?.strip_suffix('}'));
    names
        .map(|name| {
            let part = PARTS.iter().find(|part| part.name == name);
            let part = part.expect("every variable part of a path has a row");
            let schema = if row.commands.is_empty() {
                json!({"type": "string", "pattern": part.pattern})
            } else {
                json!({"enum": row.commands})
            };
            let example = row.commands.first().copied().unwrap_or(part.example);
            json!({
                "name": name, "in": "path", "required": true, "description": part.what,
                "schema": schema, "example": example,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::document;
    use crate::server::all_rows;

    #[test]
    fn every_row_is_announced_with_its_parts_and_its_body() {
        let rows = all_rows();
        let document = document(&rows, &[], true);
        for row in &rows {
            let operation = &document["paths"][row.path][row.method.as_str().to_lowercase()];
            assert!(operation["summary"].is_string(), "{} {}", row.method, row.path);
            let parts = operation["parameters"].as_array().unwrap().len();
            assert_eq!(parts, row.path.matches('{').count(), "{}", row.path);
        }
        assert_eq!(document["security"][0]["token"], serde_json::json!([]));
    }

    #[test]
    fn arguments_of_actions_have_the_documentation_of_their_rows() {
        let document = document(&all_rows(), &[], false);
        let of = |action: &str, argument: &str| {
            let schema = &document["components"]["schemas"][action]["properties"][argument];
            schema["description"].as_str().unwrap_or_default().to_owned()
        };
        let expected = "Bytes for a packet-in; `MAX_LEN_NO_BUFFER` for all of them.";
        assert_eq!(of("OUTPUT", "max_len"), expected);
        assert_eq!(of("SET-NW-TTL", "nw_ttl"), "Set the IP TTL or hop limit.");
        assert_eq!(of("WRITE-METADATA", "metadata_mask"), "A bit for each one that is written.");
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = document(&all_rows(), &[], false);
        let text = document.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
