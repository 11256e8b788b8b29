import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { entries } from '../../entries.ts'

test('the code of the docs and the API reference know the entries of package.json, and no other', () => {
  const { config } = ts.readConfigFile(
    fileURLToPath(new URL('../../docs/tsconfig.json', import.meta.url)),
    ts.sys.readFile,
  )
  const { '#crypto': _, ...paths } = config.compilerOptions.paths
  expect(paths).toEqual(Object.fromEntries(entries.map(({ name, source }) => [name, [`../${source}`]])))
})
