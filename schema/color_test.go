package schema_test

import (
	"math"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestColorsAreParsed(t *testing.T) {
	for text, want := range map[string]string{"#0b7268": "#0b7268", "#FFD400": "#ffd400", "#000000": "#000000",
		"": "", "0b7268": "", "#fff": "", "#0b7268ff": "", "#0b726g": "", "red": "", "#0b726\x00": "",
		"url(x)#": "", "#ｆfd40": ""} {
		c, err := schema.ParseColor(text)
		if want == "" && err == nil || want != "" && (err != nil || c.String() != want) {
			t.Errorf("%q: %v, %v", text, c, err)
		}
	}
}

// The contrasts are from the examples of WCAG 2, and from two checkers on the web.
func TestContrast(t *testing.T) {
	white, black := schema.Color{R: 255, G: 255, B: 255}, schema.Color{}
	for _, c := range []struct {
		one, two schema.Color
		want     float64
	}{{white, black, 21}, {black, white, 21}, {white, white, 1}, {schema.Color{R: 0x77, G: 0x77, B: 0x77}, white, 4.48},
		{schema.Color{R: 255}, white, 4.0}, {schema.Color{B: 255}, white, 8.59}} {
		if got := c.one.Contrast(c.two); math.Abs(got-c.want) > 0.005 {
			t.Errorf("%v and %v: %f, want %f", c.one, c.two, got, c.want)
		}
	}
	testkit.Equal(t, "text on the default colour", schema.DefaultColor.Text(), white)
	testkit.Equal(t, "text on yellow", schema.Color{R: 255, G: 212}.Text(), black)
	testkit.Equal(t, "the default colour on white", schema.DefaultColor.On(white), schema.DefaultColor)
}

// Whatever a domain's colour is, text on it and in it can be read.
func TestEachColorCanBeRead(t *testing.T) {
	backs := []schema.Color{{R: 255, G: 255, B: 255}, {R: 0x19, G: 0x1e, B: 0x1c}, {R: 0x77, G: 0x77, B: 0x77}}
	for r := 0; r < 256; r += 15 {
		for g := 0; g < 256; g += 15 {
			for b := 0; b < 256; b += 15 {
				c := schema.Color{R: uint8(r), G: uint8(g), B: uint8(b)}
				if got := c.Text().Contrast(c); got < schema.TextContrast {
					t.Errorf("text on %v: %f", c, got)
				}
				for _, back := range backs {
					if got := c.On(back).Contrast(back); got < schema.TextContrast {
						t.Errorf("%v on %v: %v, %f", c, back, c.On(back), got)
					}
				}
			}
		}
	}
}
