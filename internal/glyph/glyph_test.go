package glyph

import "testing"

func TestUnseen(t *testing.T) {
	for _, r := range "\x00\t\n\x1b\x7f\u00ad\u034f\u115f\u180b\u200b\u202e\u2028\u2060\u2800\u3164\ufe00\ufe0e\ufeff\uffa0\ue000\U000e0041\U000e0100\U0010fffd\u0378" {
		if !Unseen(r) {
			t.Errorf("%U counts as seen", r)
		}
	}
	for _, r := range " aé日ש\u00a0\u3000\u0301❤\ufe0f😀\u2801\ufffd" {
		if Unseen(r) {
			t.Errorf("%U counts as unseen", r)
		}
	}
}
