package workspace

import (
	"fmt"
	"slices"
	"strings"
)

// maxSuggest is the length beyond which a name is not a mistyped one: it
// bounds the work on hostile input.
const maxSuggest = 64

// didYouMean returns `: did you mean "x"?` for the known name nearest to name,
// or "" when none is near enough to be meant. A beginning of a name is near.
func didYouMean(name string, known []string) string {
	if best := nearest(name, known); best != "" {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return ""
}

func nearest(name string, known []string) string {
	if name == "" || len(name) > maxSuggest {
		return ""
	}
	folded := strings.ReplaceAll(strings.ToLower(name), "-", "_")
	best, bestDistance := "", max(1, min(3, len(name)/3))+1
	for _, k := range known {
		if len(k) > maxSuggest {
			continue
		}
		d := editDistance(folded, strings.ReplaceAll(strings.ToLower(k), "-", "_"))
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	if best == "" && len(folded) >= 3 {
		for _, k := range known {
			if strings.HasPrefix(strings.ReplaceAll(strings.ToLower(k), "-", "_"), folded) {
				return k
			}
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of
// neighbours between a and b.
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, last, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := range s {
		row[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(t)]
}

// listed joins names for a sentence: `"a", "b" or "c"`.
func listed(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
