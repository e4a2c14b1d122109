package transfer

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

const heldPart = 1 << 20 // bytes of a file that are compressed together

// The errors are impossible: the options are constant.
var (
	compressor, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(maxWork))
	decompressor, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(maxWork))
)

// heldFile is a file in memory: its parts, compressed.
type heldFile [][]byte

// add adds a part of at most heldPart bytes, and returns the number of bytes that it occupies.
func (f *heldFile) add(part []byte) int64 {
	small := append([]byte(nil), compressor.EncodeAll(part, nil)...)
	*f = append(*f, small)
	return int64(cap(small))
}

func (f heldFile) reader() io.Reader { return &heldReader{parts: f} }

// heldReader reads a heldFile.
type heldReader struct {
	parts  heldFile
	buffer []byte // of a part
	rest   []byte // of buffer
}

func (r *heldReader) Read(to []byte) (n int, err error) {
	for len(r.rest) == 0 {
		if len(r.parts) == 0 {
			return 0, io.EOF
		}
		if r.buffer, err = decompressor.DecodeAll(r.parts[0], r.buffer[:0]); err != nil {
			return 0, err
		}
		r.rest, r.parts = r.buffer, r.parts[1:]
	}
	n = copy(to, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// readPart reads until the part is full or the file ends. Unlike io.ReadFull it distinguishes the end of a file from
// the end of a connection, which is io.ErrUnexpectedEOF.
func readPart(file io.Reader, part []byte) (n int, err error) {
	for n < len(part) && err == nil {
		var more int
		more, err = file.Read(part[n:])
		n += more
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}
