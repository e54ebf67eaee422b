package strictjson

import "testing"

func TestAt(t *testing.T) {
	const doc = `{"a":[{"b":1},"x"],"":{"~/":null},"0":2}`
	for _, c := range []struct{ pointer, want string }{
		{"", doc}, {"/a/0/b", "1"}, {"/a/1", `"x"`}, {"//~0~1", "null"}, {"/0", "2"},
		{"/a/2", ""}, {"/a/-", ""}, {"/a/00", ""}, {"/a/-1", ""}, {"/a/b", ""}, {"/a/0/b/c", ""}, {"/b", ""}, {"a", ""}, {"/a~2", ""},
	} {
		if got := string(At([]byte(doc), c.pointer)); got != c.want {
			t.Errorf("%q: %s, want %s", c.pointer, got, c.want)
		}
	}
	if At(nil, "") != nil {
		t.Error("nothing holds something")
	}
}
