package strictjson

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// longWay is Canonical without the quick look.
func longWay(b []byte) ([]byte, error) {
	v := jsontext.Value(bytes.Clone(b))
	return v, v.Canonicalize(jsontext.CanonicalizeRawInts(false))
}

// TestPlainCanonical: what the quick look takes for canonical is JSON, and the long way
// leaves it as it is.
func TestPlainCanonical(t *testing.T) {
	plain := []string{`{}`, `[]`, `""`, `0`, `-1`, `123456789012345`, `true`, `null`, `{"a":[1,{"b":false}],"ab":"x y","b":{}}`, `{"":1," ":2}`}
	for _, text := range plain {
		if !plainCanonical([]byte(text)) {
			t.Errorf("%s goes the long way", text)
		}
	}
	for _, text := range []string{``, ` 1`, `1 `, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `[1,]`, `[`, `{`, `"`, `-`, `-0`, `01`, `1.0`, `1e2`, `1234567890123456`,
		`"\u0041"`, "\"\u00e4\"", "\"\x7f\"", "\"\t\"", `tru`, `truex`, `{"a":1}}`, `1,2`, `{a:1}`, `[1 ,2]`, `nul`} {
		if plainCanonical([]byte(text)) {
			t.Errorf("%s is taken for plain", text)
		}
	}
	// What differs in a byte or two.
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := []byte(`{}[]",:-0123456789eE.\ atruflsn` + "\n\x80")
	taken := 0
	for range 200_000 {
		b := []byte(plain[r.IntN(len(plain))])
		for range 1 + r.IntN(2) {
			at := r.IntN(len(b) + 1)
			b = append(b[:at:at], append([]byte{alphabet[r.IntN(len(alphabet))]}, b[min(len(b), at+r.IntN(2)):]...)...)
		}
		if !plainCanonical(b) {
			continue
		}
		taken++
		if c, err := longWay(b); err != nil || !bytes.Equal(c, b) {
			t.Fatalf("%q is taken for canonical; the long way: %q %v", b, c, err)
		}
	}
	if taken < 1000 {
		t.Errorf("only %d were taken for canonical: the test shows little", taken)
	}
}
