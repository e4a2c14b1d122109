package schema_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"linkstream/schema"
)

// TestClickAgreesWithProtobuf compares the hand-written codec with click.proto as the protobuf runtime interprets it.
func TestClickAgreesWithProtobuf(t *testing.T) {
	typ := compileClick(t)
	t.Run("the runtime decodes the bytes of AppendClick", rapid.MakeCheck(func(t *rapid.T) {
		click := drawClick(t)
		msg := dynamicpb.NewMessage(typ)
		if err := proto.Unmarshal(schema.AppendClick(nil, &click), msg); err != nil {
			t.Fatal(err)
		}
		if len(msg.GetUnknown()) > 0 {
			t.Fatalf("fields that click.proto does not have: %x", msg.GetUnknown())
		}
		sameClick(t, clickOf(msg), click)
	}))
	t.Run("DecodeClick decodes the bytes of the runtime", rapid.MakeCheck(func(t *rapid.T) {
		click := drawClick(t)
		data, err := proto.Marshal(messageOf(typ, &click))
		if err != nil {
			t.Fatal(err)
		}
		var got schema.Click
		if err := schema.DecodeClick(data, &got); err != nil {
			t.Fatal(err)
		}
		sameClick(t, got, click)
	}))
	t.Run("both encodings have the same length", rapid.MakeCheck(func(t *rapid.T) {
		click := drawClick(t)
		got, want := len(schema.AppendClick(nil, &click)), proto.Size(messageOf(typ, &click))
		if got != want {
			t.Fatalf("AppendClick wrote %d bytes, the runtime %d", got, want)
		}
	}))
}

// compileClick returns the message type that click.proto describes.
func compileClick(tb testing.TB) protoreflect.MessageDescriptor {
	tb.Helper()
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{}}
	files, err := compiler.Compile(tb.Context(), "click.proto")
	if err != nil {
		tb.Fatal(err)
	}
	return files[0].Messages().ByName("Click")
}

// drawClick returns a click whose byte fields are within their limits.
func drawClick(t *rapid.T) schema.Click {
	click := schema.Click{
		Lane: schema.Lane{
			Incarnation: schema.Incarnation(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "incarnation")),
			Number:      rapid.Uint32().Draw(t, "lane"),
		},
		Seq:       rapid.Uint64Min(1).Draw(t, "seq"),
		LinkID:    rapid.Int64().Draw(t, "link"),
		AccountID: rapid.Int64().Draw(t, "account"),
		ClickedAt: time.UnixMilli(rapid.Int64().Draw(t, "ms")).UTC(),
		Limited:   rapid.Bool().Draw(t, "limited"),
		Visitor:   rapid.Uint64().Draw(t, "visitor"),
	}
	for _, f := range byteFields {
		*f.of(&click) = rapid.SliceOfN(rapid.Byte(), 0, f.limit).Draw(t, string(f.name))
	}
	return click
}

func messageOf(typ protoreflect.MessageDescriptor, c *schema.Click) *dynamicpb.Message {
	msg := dynamicpb.NewMessage(typ)
	set := func(name protoreflect.Name, v any) {
		msg.Set(typ.Fields().ByName(name), protoreflect.ValueOf(v))
	}
	set("incarnation", c.Lane.Incarnation[:])
	set("lane", c.Lane.Number)
	set("seq", c.Seq)
	set("link_id", c.LinkID)
	set("account_id", c.AccountID)
	set("clicked_at_ms", c.ClickedAt.UnixMilli())
	set("limited", c.Limited)
	set("visitor", c.Visitor)
	for _, f := range byteFields {
		set(f.name, *f.of(c))
	}
	return msg
}

// clickOf is the inverse of messageOf; an incarnation that is not 16 bytes long is left zero.
func clickOf(msg *dynamicpb.Message) schema.Click {
	get := func(name protoreflect.Name) protoreflect.Value {
		return msg.Get(msg.Descriptor().Fields().ByName(name))
	}
	click := schema.Click{
		Lane:      schema.Lane{Number: uint32(get("lane").Uint())},
		Seq:       get("seq").Uint(),
		LinkID:    get("link_id").Int(),
		AccountID: get("account_id").Int(),
		ClickedAt: time.UnixMilli(get("clicked_at_ms").Int()).UTC(),
		Limited:   get("limited").Bool(),
		Visitor:   get("visitor").Uint(),
	}
	for _, f := range byteFields {
		*f.of(&click) = get(f.name).Bytes()
	}
	if b := get("incarnation").Bytes(); len(b) == len(click.Lane.Incarnation) {
		click.Lane.Incarnation = schema.Incarnation(b)
	}
	return click
}

// sameClick compares clicks. An empty field equals a missing one.
func sameClick(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, got, want schema.Click) {
	t.Helper()
	same := got.Lane == want.Lane && got.Seq == want.Seq && got.LinkID == want.LinkID && got.AccountID == want.AccountID &&
		got.ClickedAt.Equal(want.ClickedAt) && got.Limited == want.Limited && got.Visitor == want.Visitor
	for _, f := range byteFields {
		same = same && bytes.Equal(*f.of(&got), *f.of(&want))
	}
	if !same {
		t.Fatalf("clicks differ:\n got %+v\nwant %+v", got, want)
	}
}
