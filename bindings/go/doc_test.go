package pawl_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
	"testing"
)

func TestEverythingThatIsExportedIsDocumented(t *testing.T) {
	for _, folder := range []string{".", "fence", "pawltest"} {
		packages, err := parser.ParseDir(token.NewFileSet(), folder, func(f fs.FileInfo) bool {
			return !strings.HasSuffix(f.Name(), "_test.go")
		}, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range packages {
			for _, f := range p.Files {
				for _, d := range f.Decls {
					if name := undocumented(d); name != "" {
						t.Errorf("%s: %s has no comment", folder, name)
					}
				}
			}
		}
	}
}

// undocumented returns the exported name that the declaration does not describe, if there is one.
func undocumented(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || receiverIsExported(d.Recv)) {
			return d.Name.Name
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if one, ok := spec.(*ast.TypeSpec); ok && one.Name.IsExported() && one.Doc == nil && d.Doc == nil {
				return one.Name.Name
			}
		}
	}
	return ""
}

func receiverIsExported(list *ast.FieldList) bool {
	kind := list.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	name, ok := kind.(*ast.Ident)
	return ok && name.IsExported()
}
