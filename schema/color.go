package schema

import (
	"encoding/hex"
	"fmt"
	"math"
)

// Color is a colour of sRGB.
type Color struct{ R, G, B uint8 }

// DefaultColor is the colour of domains that have none of their own.
var DefaultColor = Color{0x0b, 0x72, 0x68}

// ParseColor returns the colour that a text such as "#0b7268" names, in either letter case.
func ParseColor(text string) (c Color, err error) {
	if len(text) == 7 && text[0] == '#' {
		var digits []byte
		if digits, err = hex.DecodeString(text[1:]); err == nil {
			return Color{digits[0], digits[1], digits[2]}, nil
		}
	}
	return c, fmt.Errorf("%q is not a colour such as %s", text, DefaultColor)
}

func (c Color) String() string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// Luminance returns the relative luminance as WCAG 2 defines it, of 0 to 1.
func (c Color) Luminance() float64 {
	linear := func(v uint8) float64 {
		if s := float64(v) / 255; s > 0.04045 {
			return math.Pow((s+0.055)/1.055, 2.4)
		}
		return float64(v) / 255 / 12.92
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// TextContrast is the least contrast of text that WCAG 2 allows on level AA.
const TextContrast = 4.5

// Contrast returns the contrast of two colours as WCAG 2 defines it, of 1 to 21.
func (c Color) Contrast(other Color) float64 {
	one, two := c.Luminance()+0.05, other.Luminance()+0.05
	return max(one, two) / min(one, two)
}

// Text returns the colour of text on c: white, or black where white has less than TextContrast. One of them has it.
func (c Color) Text() Color {
	if white := (Color{255, 255, 255}); c.Contrast(white) >= TextContrast {
		return white
	}
	return Color{}
}

// On returns c as text on back: as much darker or lighter as TextContrast needs.
func (c Color) On(back Color) Color {
	const steps = 32
	end := back.Text()
	for step := 0; ; step++ {
		mix := func(from, to uint8) uint8 { return uint8((int(from)*(steps-step) + int(to)*step) / steps) }
		mixed := Color{mix(c.R, end.R), mix(c.G, end.G), mix(c.B, end.B)}
		if step == steps || mixed.Contrast(back) >= TextContrast {
			return mixed
		}
	}
}
