package auth

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"linkstream/schema"
)

// Limits of a chosen password.
const (
	MinPasswordLen = 8    // characters
	MaxPasswordLen = 1024 // bytes; a longer one costs time and is no safer
)

// maxTypedLen bounds the bytes of a password before it is prepared: a decomposed text, or other spaces, take at most
// three times as many (Unicode's FAQ on normalization).
const maxTypedLen = 3 * MaxPasswordLen

// NewPassword returns a random password of 125 bits that is easy to read aloud: five groups of five characters of a-z
// and 2-7.
func NewPassword() string {
	text := strings.ToLower(rand.Text()) // 5 bits per character, at least 26 characters
	groups := slices.Collect(slices.Chunk([]byte(text[:25]), 5))
	return fmt.Sprintf("%s-%s-%s-%s-%s", groups[0], groups[1], groups[2], groups[3], groups[4])
}

// PreparePassword returns a password in the form that is hashed, so that it is the same from every keyboard and system:
// in the normalization form C, and with U+0020 for every space, as the profile OpaqueString of RFC 8265 (section 4.2.2)
// maps it. Characters that the profile disallows stay, because people have chosen them: characters of newer versions of
// Unicode, and the joiners of emoji.
func PreparePassword(password string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Zs, r) {
			return ' '
		}
		return r
	}, password))
}

// ValidatePassword returns CodeInvalid, with the reason, if a chosen password is too short or too long.
func ValidatePassword(password string) error {
	password = PreparePassword(password)
	if utf8.RuneCountInString(password) < MinPasswordLen || len(password) > MaxPasswordLen {
		return schema.ClientErrorf(schema.CodeInvalid, "A password must have at least %d characters and at most %d bytes.",
			MinPasswordLen, MaxPasswordLen)
	}
	return nil
}

// HashPassword returns the stored form of a password: an argon2id hash with a random salt, as a PHC string. It takes
// about 20 ms of CPU and 19 MiB, the minimum that OWASP's Password Storage Cheat Sheet recommends. The password is
// prepared first.
func HashPassword(password string) string {
	h := passwordHash{memory: 19 << 10, time: 2, threads: 1, salt: make([]byte, 16)}
	rand.Read(h.salt) // never fails, see crypto/rand
	h.key = h.derive(PreparePassword(password), 32)
	return h.String()
}

// VerifyPassword reports whether hash, a PHC string of argon2id, is the hash of password: prepared, or as it is, since
// hashes of 1.0 were made without preparation. It returns an error if hash is not such a string, or if its parameters
// exceed the limits below.
func VerifyPassword(hash, password string) (bool, error) {
	h, err := parsePasswordHash(hash)
	if err != nil || len(password) > maxTypedLen {
		return false, err
	}
	prepared := PreparePassword(password)
	if h.isOf(prepared) {
		return true, nil
	}
	return prepared != password && h.isOf(password), nil
}

// passwordHash is a PHC string, $argon2id$v=19$m=memory,t=time,p=threads$salt$key. The format is specified at
// https://github.com/P-H-C/phc-string-format/blob/master/phc-sf-spec.md.
type passwordHash struct {
	memory    uint32 // KiB
	time      uint32 // passes
	threads   uint8
	salt, key []byte
}

// Limits of a hash's parameters, so that verifying it cannot exhaust the machine.
const (
	maxMemory  = 256 << 10 // KiB
	maxTime    = 16
	maxThreads = 16
	minSaltLen = 8
	minKeyLen  = 16
	maxBytes   = 64 // of the salt, and of the key
)

var errPasswordHash = errors.New("password hash: not a PHC string of argon2id within the limits")

// parsePasswordHash accepts exactly what String returns.
func parsePasswordHash(s string) (passwordHash, error) {
	fields := strings.FieldsFunc(s, func(c rune) bool { return strings.ContainsRune("$,=", c) })
	if len(fields) != 11 {
		return passwordHash{}, errPasswordHash
	}
	number := func(field string, bits int) uint64 {
		n, _ := strconv.ParseUint(field, 10, bits) // an error makes the comparison below fail
		return n
	}
	decode := func(field string) []byte {
		b, _ := base64.RawStdEncoding.DecodeString(field)
		return b
	}
	h := passwordHash{
		memory: uint32(number(fields[4], 32)), time: uint32(number(fields[6], 32)), threads: uint8(number(fields[8], 8)),
		salt: decode(fields[9]), key: decode(fields[10]),
	}
	switch {
	case h.String() != s,
		h.threads < 1 || h.threads > maxThreads,
		h.time < 1 || h.time > maxTime,
		h.memory < 8*uint32(h.threads) || h.memory > maxMemory,
		len(h.salt) < minSaltLen || len(h.salt) > maxBytes,
		len(h.key) < minKeyLen || len(h.key) > maxBytes:
		return passwordHash{}, errPasswordHash
	}
	return h, nil
}

func (h passwordHash) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.time, h.threads,
		base64.RawStdEncoding.EncodeToString(h.salt), base64.RawStdEncoding.EncodeToString(h.key))
}

// isOf reports whether the hash is of a password.
func (h passwordHash) isOf(password string) bool {
	return len(password) <= MaxPasswordLen && subtle.ConstantTimeCompare(h.derive(password, len(h.key)), h.key) == 1
}

func (h passwordHash) derive(password string, keyLen int) []byte {
	return argon2.IDKey([]byte(password), h.salt, h.time, h.memory, h.threads, uint32(keyLen))
}
