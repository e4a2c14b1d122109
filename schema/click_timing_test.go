package schema_test

import (
	"bytes"
	"fmt"
	"testing"

	"linkstream/schema"
)

// clickSizes are total lengths of User-Agent and Referrer: none, a typical one and the maximum.
var clickSizes = []int{0, 200, schema.MaxUserAgentLen + schema.MaxReferrerLen}

func clickOfSize(n int) schema.Click {
	click := sampleClick()
	click.UserAgent = bytes.Repeat([]byte("u"), n/2)
	click.Referrer = bytes.Repeat([]byte("r"), n/2)
	return click
}

func BenchmarkAppendClick(b *testing.B) {
	for _, n := range clickSizes {
		b.Run(fmt.Sprintf("headers=%d", n), func(b *testing.B) {
			click := clickOfSize(n)
			buf := make([]byte, 0, schema.MaxClickLen)
			b.SetBytes(int64(len(schema.AppendClick(buf, &click))))
			b.ReportAllocs()
			for b.Loop() {
				buf = schema.AppendClick(buf[:0], &click)
			}
		})
	}
}

func BenchmarkDecodeClick(b *testing.B) {
	for _, n := range clickSizes {
		b.Run(fmt.Sprintf("headers=%d", n), func(b *testing.B) {
			click := clickOfSize(n)
			data := schema.AppendClick(nil, &click)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := schema.DecodeClick(data, &click); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
