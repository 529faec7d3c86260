package pawl_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The examples of the README are functions of example_test.go, which run.
func TestTheExamplesOfTheReadmeAreThoseThatRun(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) < 6 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, block := range blocks {
		for _, function := range strings.SplitAfter(block[1], "\n}\n") {
			if function = strings.TrimSpace(function); !strings.Contains(string(source), function) {
				t.Errorf("this does not run:\n%s", function)
			}
		}
	}
	for _, name := range regexp.MustCompile("`(Err[A-Z][A-Za-z]+)`").FindAllStringSubmatch(string(readme), -1) {
		errors, err := os.ReadFile("errors.go")
		if err != nil || !strings.Contains(string(errors), "	"+name[1]+" ") {
			t.Errorf("there is no %s", name[1])
		}
	}
}
