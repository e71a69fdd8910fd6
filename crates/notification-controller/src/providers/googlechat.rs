//! `googlechat`: a card in a room of Google Chat.

use api::Event;
use notification_specs::provider;
use serde_json::json;

use super::{
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::GOOGLECHAT,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let text = match wire::is_error(event) {
        true => format!("<font color=\"#ff0000\">{}</font>", event.message),
        false => event.message.clone(),
    };
    let mut sections = vec![json!({
        "header": "", "widgets": [{"textParagraph": {"text": text}, "keyValue": null}],
    })];
    if !event.metadata.is_empty() {
        let widget = |(key, value): (&String, &String)| {
            let pair = json!({
                "topLabel": key, "content": value, "contentMultiline": false, "bottomLabel": null, "icon": null,
            });
            json!({"textParagraph": null, "keyValue": pair})
        };
        let widgets: Vec<_> = event.metadata.iter().map(widget).collect();
        sections.push(json!({"header": "", "widgets": widgets}));
    }
    let header = json!({
        "title": wire::title(event), "subtitle": event.reporting_controller, "imageUrl": null, "imageStyle": null,
    });
    let card = json!({"cards": [{"header": header, "sections": sections}]});
    Ok(vec![Step::Send(wire::json(config.url()?, &card)?)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, event, failure, with};

    #[test]
    fn googlechat_gets_a_card_with_the_message_and_its_metadata() {
        let config = with("https://chat.googleapis.com/v1/spaces/x", "", "");
        let card = &body(TYPE, &event(), &config)["cards"][0];
        assert_eq!(card["header"]["title"], "gitrepository/shop.team");
        assert_eq!(card["header"]["subtitle"], "source-controller");
        let widget = &card["sections"][1]["widgets"][0]["keyValue"];
        assert_eq!(
            (&widget["topLabel"], &widget["content"]),
            (&"revision".into(), &"main@sha1:1".into())
        );
        let card = &body(TYPE, &failure(), &config)["cards"][0];
        let text = card["sections"][0]["widgets"][0]["textParagraph"]["text"]
            .as_str()
            .unwrap();
        assert!(text.starts_with("<font color=\"#ff0000\">stored"), "{text}");
    }
}
