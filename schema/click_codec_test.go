package schema_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"linkstream/schema"
)

// byteFields are the fields of a click with bytes from the client, as click.proto names them.
var byteFields = []struct {
	name  protoreflect.Name
	limit int
	of    func(*schema.Click) *[]byte
}{
	{"user_agent", schema.MaxUserAgentLen, func(c *schema.Click) *[]byte { return &c.UserAgent }},
	{"referrer", schema.MaxReferrerLen, func(c *schema.Click) *[]byte { return &c.Referrer }},
	{"network", schema.MaxNetworkLen, func(c *schema.Click) *[]byte { return &c.Network }},
	{"language", schema.MaxLanguageLen, func(c *schema.Click) *[]byte { return &c.Language }},
	{"route", schema.MaxRouteLen, func(c *schema.Click) *[]byte { return &c.Route }},
	{"campaign", schema.MaxCampaignLen, func(c *schema.Click) *[]byte { return &c.Campaign }},
	{"path", schema.MaxPathLen, func(c *schema.Click) *[]byte { return &c.Path }},
}

// sampleClick has a value in every field.
func sampleClick() schema.Click {
	return schema.Click{
		Lane:      schema.Lane{Incarnation: schema.Incarnation([]byte("0123456789abcdef")), Number: 3},
		Seq:       71,
		LinkID:    4711,
		AccountID: 815,
		ClickedAt: time.Date(2026, time.November, 21, 9, 30, 15, 250e6, time.UTC),
		UserAgent: []byte("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
		Referrer:  []byte("https://example.org/page?\xff"),
		Network:   []byte{203, 0, 113},
		Language:  []byte("de-AT"),
		Route:     []byte("phones"),
		Campaign:  []byte("mail / - / spring"),
		Path:      []byte("docs/install"),
		Limited:   true,
		Visitor:   1 << 63,
	}
}

// largestClick has the largest encoding of every field.
func largestClick() schema.Click {
	click := schema.Click{
		Lane:      schema.Lane{Incarnation: schema.Incarnation(bytes.Repeat([]byte{0xff}, 16)), Number: math.MaxUint32},
		Seq:       math.MaxUint64,
		LinkID:    -1,
		AccountID: -1,
		ClickedAt: time.UnixMilli(-1),
	}
	for _, f := range byteFields {
		*f.of(&click) = bytes.Repeat([]byte("a"), 2*f.limit)
	}
	click.Limited, click.Visitor = true, math.MaxUint64
	return click
}

func TestAppendClick(t *testing.T) {
	t.Run("appends to dst", func(t *testing.T) {
		click := sampleClick()
		got := schema.AppendClick([]byte("before"), &click)
		if want := append([]byte("before"), schema.AppendClick(nil, &click)...); !bytes.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
	t.Run("equals the identity followed by the body", func(t *testing.T) {
		click := sampleClick()
		got := schema.AppendClickBody(schema.AppendClickIdentity(nil, click.Lane, click.Seq), &click)
		if want := schema.AppendClick(nil, &click); !bytes.Equal(got, want) {
			t.Fatalf("got %x, want %x", got, want)
		}
	})
	t.Run("truncates byte fields to their limits", func(t *testing.T) {
		click := largestClick()
		var got schema.Click
		if err := schema.DecodeClick(schema.AppendClick(nil, &click), &got); err != nil {
			t.Fatal(err)
		}
		sameClick(t, got, withinLimits(click))
	})
	t.Run("reaches MaxClickLen and never exceeds it", func(t *testing.T) {
		click := largestClick()
		if n := len(schema.AppendClickBody(nil, &click)); n != schema.MaxClickBodyLen {
			t.Errorf("the largest body has %d bytes, MaxClickBodyLen is %d", n, schema.MaxClickBodyLen)
		}
		if n := len(schema.AppendClick(nil, &click)); n != schema.MaxClickLen {
			t.Errorf("the largest click has %d bytes, MaxClickLen is %d", n, schema.MaxClickLen)
		}
	})
	t.Run("does not allocate", func(t *testing.T) {
		click := largestClick()
		buf := make([]byte, 0, schema.MaxClickLen)
		if n := testing.AllocsPerRun(100, func() { buf = schema.AppendClick(buf[:0], &click) }); n != 0 {
			t.Fatalf("%v allocations", n)
		}
	})
}

// withinLimits returns the click as AppendClick truncates it.
func withinLimits(c schema.Click) schema.Click {
	for _, f := range byteFields {
		v := f.of(&c)
		*v = (*v)[:min(len(*v), f.limit)]
	}
	return c
}

func TestDecodeClick(t *testing.T) {
	click := sampleClick()
	data := schema.AppendClick(nil, &click)
	decodes := func(t *testing.T, data []byte) {
		t.Helper()
		got := largestClick() // no part of an earlier click may remain
		if err := schema.DecodeClick(data, &got); err != nil {
			t.Fatal(err)
		}
		sameClick(t, got, click)
	}
	t.Run("decodes every field", func(t *testing.T) { decodes(t, data) })
	t.Run("returns the time in UTC", func(t *testing.T) {
		var got schema.Click
		if err := schema.DecodeClick(data, &got); err != nil || got.ClickedAt.Location() != time.UTC {
			t.Fatalf("error %v, location %v", err, got.ClickedAt.Location())
		}
	})
	t.Run("skips unknown fields of every wire type", func(t *testing.T) {
		decodes(t, append(unknownFields(1000), append(data, unknownFields(20)...)...))
	})
	t.Run("skips known fields of another wire type", func(t *testing.T) {
		with := bytes.Clone(data)
		for field := protowire.Number(1); field <= 10; field++ {
			with = protowire.AppendFixed64(protowire.AppendTag(with, field, protowire.Fixed64Type), 1)
		}
		with = protowire.AppendVarint(protowire.AppendTag(with, 1, protowire.VarintType), 1)
		with = protowire.AppendString(protowire.AppendTag(with, 3, protowire.BytesType), "not a number")
		decodes(t, with)
	})
	t.Run("uses the last of a repeated field", func(t *testing.T) {
		other := largestClick()
		decodes(t, append(schema.AppendClick(nil, &other), data...))
	})
	t.Run("does not allocate", func(t *testing.T) {
		var got schema.Click
		if n := testing.AllocsPerRun(100, func() { _ = schema.DecodeClick(data, &got) }); n != 0 {
			t.Fatalf("%v allocations", n)
		}
	})
}

// unknownFields encodes a field of every wire type, with numbers from first on.
func unknownFields(first protowire.Number) (b []byte) {
	b = protowire.AppendVarint(protowire.AppendTag(b, first, protowire.VarintType), math.MaxUint64)
	b = protowire.AppendFixed32(protowire.AppendTag(b, first+1, protowire.Fixed32Type), 7)
	b = protowire.AppendFixed64(protowire.AppendTag(b, first+2, protowire.Fixed64Type), 7)
	b = protowire.AppendString(protowire.AppendTag(b, first+3, protowire.BytesType), "of a later version")
	b = protowire.AppendTag(b, first+4, protowire.StartGroupType)
	b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), 7)
	return protowire.AppendTag(b, first+4, protowire.EndGroupType)
}

func TestDecodeClickRejects(t *testing.T) {
	click := sampleClick()
	data := schema.AppendClick(nil, &click)
	identity := len(schema.AppendClickIdentity(nil, click.Lane, click.Seq))
	refuses := func(t *testing.T, data []byte) {
		t.Helper()
		var got schema.Click
		if err := schema.DecodeClick(data, &got); err == nil {
			t.Fatalf("%x was read as %+v", data, got)
		}
	}
	t.Run("data that ends inside a field or before the identity is complete", func(t *testing.T) {
		for n := range len(data) {
			var got schema.Click
			err := schema.DecodeClick(data[:n], &got)
			if whole := n >= identity && startsField(data, n); (err == nil) != whole {
				t.Errorf("cut to %d bytes: %v", n, err)
			}
		}
	})
	t.Run("no incarnation", func(t *testing.T) { refuses(t, data[18:]) })
	t.Run("an incarnation that is not 16 bytes long", func(t *testing.T) {
		tag := protowire.AppendTag(nil, 1, protowire.BytesType)
		refuses(t, append(protowire.AppendBytes(tag, make([]byte, 15)), data[18:]...))
		refuses(t, append(data, protowire.AppendBytes(tag, make([]byte, 17))...))
	})
	t.Run("no seq", func(t *testing.T) {
		refuses(t, schema.AppendClickBody(schema.AppendClickIdentity(nil, click.Lane, 0), &click))
	})
	t.Run("data that is not protobuf", func(t *testing.T) {
		refuses(t, nil)
		for _, junk := range []string{"hello", "\x00", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x0b", "\x0c"} {
			refuses(t, []byte(junk))
			refuses(t, append(bytes.Clone(data[:identity]), junk...))
		}
	})
}

// startsField reports whether a field of data begins at n.
func startsField(data []byte, n int) bool {
	at := 0
	for at < n {
		_, _, length := protowire.ConsumeField(data[at:])
		at += length
	}
	return at == n
}

// FuzzDecodeClick compares DecodeClick with the protobuf runtime: both decode the same click from any data, and
// encoding and decoding it again does not change it.
func FuzzDecodeClick(f *testing.F) {
	for _, click := range []schema.Click{sampleClick(), largestClick()} {
		data := schema.AppendClick(nil, &click)
		f.Add(data)
		f.Add(append(data, unknownFields(20)...))
		f.Add(data[:len(data)/2])
	}
	typ := compileClick(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var click schema.Click
		err := schema.DecodeClick(data, &click)
		msg := dynamicpb.NewMessage(typ)
		if protoErr := proto.Unmarshal(data, msg); protoErr != nil {
			return // the runtime rejects field numbers that no message can have, DecodeClick skips them
		}
		want := clickOf(msg)
		fields := typ.Fields()
		countable := len(msg.Get(fields.ByName("incarnation")).Bytes()) == 16 && want.Seq > 0
		if (err == nil) != countable {
			t.Fatalf("can be counted: %v, error: %v", countable, err)
		}
		if err != nil {
			return
		}
		sameClick(t, click, want)
		var again schema.Click
		if err := schema.DecodeClick(schema.AppendClick(nil, &click), &again); err != nil {
			t.Fatal(err)
		}
		sameClick(t, again, withinLimits(click))
	})
}
