package cli

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"linkstream/api/client"
)

func (c *command) qrCommand() *cobra.Command {
	file := ""
	cmd := aboutLinks("qr HASH", "Draw the QR code of a link here, or into a file", cobra.ExactArgs(1),
		func(cmd *cobra.Command, args []string) error { return c.drawCode(cmd, args[0], file) })
	flags := cmd.Flags()
	flags.StringVarP(&file, "out", "o", "", "write this `file`, as PNG or SVG by its name; - for standard output")
	flags.Int("size", 0, "width and height of the image in `pixels`")
	flags.String("level", "", "the `level` of error correction: L, M, Q or H")
	flags.String("foreground", "", "the `colour` of the code, such as 0B3D2E")
	flags.String("background", "", "the `colour` around the code")
	flags.Int("margin", 0, "the width of the quiet zone in `modules` of the code")
	return cmd
}

func (c *command) drawCode(cmd *cobra.Command, hash, file string) error {
	api, ask, err := c.connectFor(cmd, "size", "level", "foreground", "background", "margin")
	if err != nil {
		return err
	}
	format := url.Values{"format": {"svg"}}
	if file == "" { // black on white, with pixels for each module
		format = url.Values{"format": {"png"}, "size": {"1024"}, "foreground": {"000000"}, "background": {"FFFFFF"}}
	} else if strings.EqualFold(filepath.Ext(file), ".png") {
		format = url.Values{"format": {"png"}}
	}
	resp, err := api.LinkQR(cmd.Context(), hash, nil, ask, query(format))
	drawn, err := client.Read[[]byte](resp, err)
	switch {
	case err != nil:
		return err
	case file == "":
		return c.printCode(drawn)
	case file == "-":
		_, err = c.out.Write(drawn)
		return err
	}
	return os.WriteFile(file, drawn, 0o666)
}

// printCode draws the image of a QR code with half blocks: two rows of modules per line. On a terminal it is black on
// white, whatever its colours are.
func (c *command) printCode(drawn []byte) error {
	code, err := png.Decode(bytes.NewReader(drawn))
	if err != nil {
		return err
	}
	modules, err := readModules(code)
	if err != nil {
		return err
	}
	const quiet = 2
	dark := func(x, y int) bool {
		x, y = x-quiet, y-quiet
		return 0 <= y && y < len(modules) && 0 <= x && x < len(modules) && modules[y][x]
	}
	var text strings.Builder
	for y := 0; y < len(modules)+2*quiet; y += 2 {
		line := ""
		for x := range len(modules) + 2*quiet {
			switch upper, lower := dark(x, y), dark(x, y+1); {
			case upper && lower:
				line += "█"
			case upper:
				line += "▀"
			case lower:
				line += "▄"
			default:
				line += " "
			}
		}
		if c.terminal {
			line = "\x1b[30;107m" + line + "\x1b[0m"
		}
		text.WriteString(line + "\n")
	}
	_, err = io.WriteString(c.out, text.String())
	return err
}

// readModules returns the modules of a code in an image, dark ones as true. Its upper left corner is a dark bar of
// seven modules, and its width is 17 modules and a multiple of four (ISO/IEC 18004). Modules need not have the same
// number of pixels.
func readModules(img image.Image) ([][]bool, error) {
	dark := func(x, y int) bool {
		red, _, _, _ := img.At(x, y).RGBA()
		return red < 0x8000
	}
	size := img.Bounds().Dx()
	first := 0
	for first < size && !dark(first, first) {
		first++
	}
	bar := 0
	for first+bar < size && dark(first+bar, first) {
		bar++
	}
	if bar < 7 {
		return nil, errors.New("the image is not one of a QR code")
	}
	width := size - 2*first
	count := 17 + (width*7/bar-17+2)/4*4
	modules := make([][]bool, count)
	for y := range modules {
		modules[y] = make([]bool, count)
		for x := range modules {
			modules[y][x] = dark(first+(2*x+1)*width/(2*count), first+(2*y+1)*width/(2*count))
		}
	}
	return modules, nil
}
