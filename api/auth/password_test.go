package auth_test

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// reference is a hash of "password" from the tests of the reference implementation of Argon2.
const reference = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"

func TestNewPassword(t *testing.T) {
	form := regexp.MustCompile(`^([a-z2-7]{5}-){4}[a-z2-7]{5}$`)
	seen := map[string]bool{}
	for range 1000 {
		password := auth.NewPassword()
		if !form.MatchString(password) || seen[password] {
			t.Fatalf("password %q, seen before: %t", password, seen[password])
		}
		testkit.Must(t, auth.ValidatePassword(password))
		seen[password] = true
	}
}

func TestCheckPassword(t *testing.T) {
	for name, c := range map[string]struct {
		password string
		code     schema.Code
	}{
		"empty":                         {"", schema.CodeInvalid},
		"7 characters":                  {"1234567", schema.CodeInvalid},
		"7 characters of several bytes": {strings.Repeat("ü", 7), schema.CodeInvalid},
		"8 characters":                  {"12345678", ""},
		"spaces and any script":         {"  pässwörd 密码 ", ""},
		"1024 bytes":                    {strings.Repeat("x", 1024), ""},
		"1025 bytes":                    {strings.Repeat("x", 1025), schema.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) { testkit.WantCode(t, auth.ValidatePassword(c.password), c.code) })
	}
}

func TestVerifyPassword(t *testing.T) {
	hash := auth.HashPassword("correct horse")
	for name, c := range map[string]struct {
		hash, password string
		ok             bool
	}{
		"the password":               {hash, "correct horse", true},
		"another password":           {hash, "correct horsf", false},
		"no password":                {hash, "", false},
		"the password with a suffix": {hash, "correct horse ", false},
		"a password over the limit": {auth.HashPassword(strings.Repeat("x", 1025)),
			strings.Repeat("x", 1025), false},
		"the reference's password":           {reference, "password", true},
		"another password for the reference": {reference, "passwore", false},
		"the hash with other parameters":     {strings.Replace(reference, "t=2", "t=3", 1), "password", false},
	} {
		t.Run(name, func(t *testing.T) {
			ok, err := auth.VerifyPassword(c.hash, c.password)
			if err != nil || ok != c.ok {
				t.Errorf("%t, %v, want %t", ok, err, c.ok)
			}
		})
	}
	t.Run("a password is the same in any Unicode form, with any spaces", func(t *testing.T) {
		for password, spellings := range map[string][]string{
			"gr\u00fc\u00dfe 42": {"gru\u0308\u00dfe 42", "gr\u00fc\u00dfe\u00a042",
				"gru\u0308\u00dfe\u300042"},
			"\u1ec7 \u00c5 \u03a9 \uac01": {"e\u0323\u0302 A\u030a \u2126 \u1100\u1161\u11a8",
				"e\u0302\u0323 \u212b \u03a9 \uac00\u11a8"},
			"\U0001f469\u200d\U0001f52c \U0001faea": {"\U0001f469\u200d\U0001f52c\u2003\U0001faea"},
		} {
			for _, set := range append(spellings, password) {
				hash := auth.HashPassword(set)
				for _, typed := range append(spellings, password) {
					if ok, err := auth.VerifyPassword(hash, typed); !ok || err != nil {
						t.Errorf("%+q is set, %+q refused: %v", set, typed, err)
					}
				}
			}
		}
		for set, typed := range map[string]string{"gr\u00fc\u00dfe 42": "GR\u00fc\u00dfe 42", "a\uff22cdefgh": "aBcdefgh",
			"\ufb01le name": "file name", "gr\u00fc\u00dfe 42 ": "gr\u00fc\u00dfe 42", "\u00b2 plus 2": "2 plus 2"} {
			if ok, _ := auth.VerifyPassword(auth.HashPassword(set), typed); ok {
				t.Errorf("%+q is set, %+q accepted", set, typed)
			}
		}
	})
	t.Run("a hash of a password that was not prepared is still verified", func(t *testing.T) {
		for _, password := range []string{"gru\u0308\u00dfe 42", "a\u00a0b\u00a0c\u00a0d"} {
			key := argon2.IDKey([]byte(password), []byte("saltsalt"), 2, 19<<10, 1, 32)
			hash := "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$" + base64.RawStdEncoding.EncodeToString(key)
			if ok, err := auth.VerifyPassword(hash, password); !ok || err != nil {
				t.Errorf("%+q is refused: %v", password, err)
			}
			if ok, _ := auth.VerifyPassword(hash, password+"x"); ok {
				t.Errorf("%+q and more is accepted", password)
			}
		}
	})
	t.Run("a decomposed password may have as many characters", func(t *testing.T) {
		long := strings.Repeat("\uac01", auth.MaxPasswordLen/3)
		decomposed := strings.Repeat("\u1100\u1161\u11a8", auth.MaxPasswordLen/3)
		testkit.Must(t, auth.ValidatePassword(decomposed))
		if ok, err := auth.VerifyPassword(auth.HashPassword(long), decomposed); !ok || err != nil {
			t.Errorf("refused: %v", err)
		}
		testkit.WantCode(t, auth.ValidatePassword(strings.Repeat("e\u0323\u0302", 7)), schema.CodeInvalid)
	})
	t.Run("each hash has its own salt", func(t *testing.T) {
		if auth.HashPassword("correct horse") == hash {
			t.Errorf("%s twice", hash)
		}
	})
	t.Run("a hash is a PHC string of argon2id", func(t *testing.T) {
		form := `^\$argon2id\$v=19\$m=19456,t=2,p=1\$[0-9A-Za-z+/]{22}\$[0-9A-Za-z+/]{43}$`
		if !regexp.MustCompile(form).MatchString(hash) {
			t.Errorf("%s", hash)
		}
	})
}

func TestVerifyPasswordRefusesHash(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(reference, old, new, 1) }
	const salt, key = "c29tZXNhbHQ", "CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	for name, hash := range map[string]string{
		"empty":                         "",
		"text":                          "password",
		"only separators":               "$$$$$",
		"another function":              replace("argon2id", "argon2i"),
		"another version":               replace("v=19", "v=16"),
		"no version":                    replace("v=19$", ""),
		"parameters in another order":   replace("m=65536,t=2", "t=2,m=65536"),
		"an extra parameter":            replace("p=1", "p=1,x=1"),
		"other separators":              replace("m=65536,", "m=65536$"),
		"a leading zero":                replace("t=2", "t=02"),
		"a sign":                        replace("t=2", "t=+2"),
		"a negative number":             replace("t=2", "t=-2"),
		"a number too large":            replace("p=1", "p=257"),
		"no passes":                     replace("t=2", "t=0"),
		"no threads":                    replace("p=1", "p=0"),
		"too many passes":               replace("t=2", "t=17"),
		"too many threads":              replace("p=1", "p=17"),
		"too much memory":               replace("m=65536", "m=262145"),
		"less memory than 8 per thread": replace("m=65536,t=2,p=1", "m=15,t=2,p=2"),
		"no salt":                       replace(salt, ""),
		"a short salt":                  replace(salt, "c29tZXNh"),
		"a long salt":                   replace(salt, strings.Repeat("A", 90)),
		"a salt that is not base64":     replace(salt, "c29tZXNhb*Q"),
		"base64 for URLs":               replace(salt, "c29tZXNhb_Q"),
		"base64 with padding":           replace(salt, salt+"=="),
		"base64 with stray bits":        replace(salt, "c29tZXNhbHR"),
		"base64 with a line break":      replace(salt, "c29tZXN\nhbHQ"),
		"no key":                        replace(key, ""),
		"a short key":                   replace(key, key[:20]),
		"a long key":                    replace(key, strings.Repeat("A", 90)),
		"a space at the end":            reference + " ",
		"a field at the end":            reference + "$A",
	} {
		t.Run(name, func(t *testing.T) {
			if ok, err := auth.VerifyPassword(hash, "password"); ok || err == nil {
				t.Errorf("%q: %t, %v", hash, ok, err)
			}
		})
	}
}

// Invariants: a prepared password is prepared, and so is the same text in another form.
func FuzzPreparePassword(f *testing.F) {
	for _, password := range []string{"gru\u0308\u00dfe\u00a042", "\u1100\u1161\u11a8", "\u212b\ufb01\uff22",
		"\xff\u0308"} {
		f.Add(password)
	}
	f.Fuzz(func(t *testing.T, password string) {
		prepared := auth.PreparePassword(password)
		for _, spelling := range []string{prepared, norm.NFD.String(password), norm.NFC.String(password)} {
			if got := auth.PreparePassword(spelling); got != prepared {
				t.Errorf("%+q is prepared as %+q, %+q as %+q", password, prepared, spelling, got)
			}
		}
	})
}

// Invariants: an accepted hash has exactly one spelling, and no input makes the parser panic.
func FuzzPasswordHash(f *testing.F) {
	f.Add(reference)
	f.Add("$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA")
	f.Add("$argon2id$v=19$m=008,t=1,p=1$$")
	f.Fuzz(func(t *testing.T, hash string) {
		if again, err := auth.ReparsePasswordHash(hash); err == nil && again != hash {
			t.Errorf("%q was parsed as %q", hash, again)
		}
	})
}
