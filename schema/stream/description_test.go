package stream_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// TestTopicDescription compares the AsyncAPI document with the settings that it describes.
func TestTopicDescription(t *testing.T) {
	var doc struct {
		AsyncAPI string `json:"asyncapi"`
		Channels map[string]struct {
			Address  string
			Messages map[string]struct {
				Payload struct {
					SchemaFormat string `json:"schemaFormat"`
					Schema       string
				}
			}
		}
		Operations map[string]struct{ Action string }
	}
	text, err := os.ReadFile("../asyncapi.json")
	testkit.Must(t, err)
	testkit.Must(t, json.Unmarshal(text, &doc))
	clicks := doc.Channels["clicks"]
	testkit.Equal(t, "version", doc.AsyncAPI, "3.0.0")
	testkit.Equal(t, "topic", clicks.Address, stream.DefaultConfig().Clicks)
	testkit.Equal(t, "format", clicks.Messages["click"].Payload.SchemaFormat, "application/vnd.google.protobuf;version=3")
	proto, err := os.ReadFile("../click.proto")
	testkit.Must(t, err)
	_, message, _ := strings.Cut(string(proto), "message Click {")
	testkit.Equal(t, "schema", squeezed(clicks.Messages["click"].Payload.Schema),
		squeezed(withoutComments("syntax = \"proto3\"; message Click {"+message)))
}

func withoutComments(proto string) string {
	lines := strings.Split(proto, "\n")
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, "//")
	}
	return strings.Join(lines, "\n")
}

func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }
