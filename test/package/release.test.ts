import { execFile, execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** What a release reads and writes, and ignores. */
const copied = ['.gitignore', 'README.md', 'CHANGELOG.md', 'examples']
const manifests = ['package.json', 'package-lock.json']

interface Outcome {
  readonly code: number
  readonly output: string
}

class Clone {
  readonly folder: string

  constructor(folder: string) {
    this.folder = folder
  }

  read(path: string): string {
    return readFileSync(join(this.folder, path), 'utf8')
  }

  change(path: string, pattern: string | RegExp, replacement: string): void {
    writeFileSync(join(this.folder, path), this.read(path).replace(pattern, replacement))
  }

  git(...args: readonly string[]): string {
    const identity = ['-c', 'user.name=A tester', '-c', 'user.email=tester@example.com']
    return execFileSync('git', [...identity, ...args], { cwd: this.folder, encoding: 'utf8' })
  }

  commit(): void {
    this.git('add', '--all')
    this.git('commit', '--quiet', '--message', 'a change')
  }

  async release(...args: readonly string[]): Promise<Outcome> {
    const tsx = join(root, 'node_modules/.bin/tsx')
    // `npm pack` would build the copy again.
    const env = { ...process.env, npm_config_ignore_scripts: 'true' }
    const running = promisify(execFile)(tsx, [join(root, '.ci/release.ts'), ...args], { cwd: this.folder, env })
    return running.then(
      ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
      ({ code, stdout, stderr }) => ({ code, output: stdout + stderr }),
    )
  }
}

/** Copies this working tree into a repository of its own, with an address at GitHub, where all is committed. */
async function clone(...others: readonly string[]): Promise<Clone> {
  const copy = new Clone(await temporaryFolder())
  for (const name of [...copied, ...manifests, ...others])
    await cp(join(root, name), join(copy.folder, name), { recursive: true })
  copy.change('package.json', '"license"', '"repository": "github:example/media-webhooks",\n  "license"')
  copy.git('init', '--quiet')
  copy.commit()
  return copy
}

test('a release writes its version everywhere, and gives the unreleased changes its date', async () => {
  const copy = await clone()
  const before = copy.read('CHANGELOG.md')
  const { code, output } = await copy.release('99.0.0')
  expect([code, output]).toEqual([0, expect.stringContaining('git tag v99.0.0')])

  const [manifest, lock] = manifests.map((path) => JSON.parse(copy.read(path)))
  expect([manifest.version, lock.version, lock.packages[''].version]).toEqual(['99.0.0', '99.0.0', '99.0.0'])
  const [heading = ''] = /^## 99\.0\.0 - \d{4}-\d\d-\d\d$/m.exec(copy.read('CHANGELOG.md')) ?? []
  expect(copy.read('CHANGELOG.md')).toBe(before.replace('## Unreleased\n', `## Unreleased\n\n${heading}\n`))
  const examples = readdirSync(`${root}examples`).map((name) => `examples/${name}/package.json`)
  for (const path of examples) expect(copy.read(path)).toContain('"media-webhooks": "^99.0.0"')
  const changed = copy.git('diff', '--name-only').trim().split('\n')
  expect(new Set(changed)).toEqual(new Set(['CHANGELOG.md', ...examples, ...manifests]))
})

test('a dry run shows the changes and the files of the package, and writes nothing', async () => {
  const copy = await clone('dist') // built before these tests
  const { code, output } = await copy.release('99.0.0', '--dry-run')
  expect([code, output]).toEqual([0, expect.stringMatching(/^## 99\.0\.0 - \d{4}-\d\d-\d\d\n\n\S/m)])
  expect(output).toMatch(/dist\/src\/index\.js$/m)
  expect(output).toMatch(/media-webhooks-[\d.]+\.tgz/)
  expect(copy.git('status', '--porcelain')).toBe('')
})

describe('nothing is written', () => {
  const unreleased = /(?<=## Unreleased\n).*?(?=^## |$(?![\s\S]))/ms

  test.each<[problem: string, version: string, prepare: (copy: Clone) => void, output: string]>([
    ['the tree is dirty', '99.0.0', (copy) => copy.change('README.md', /$/, '\n'), ' M README.md'],
    ['the version is none', '99.0', () => {}, '"99.0" is no version'],
    ['the version was released', '99.0.0', releasedBefore('99.0.0'), 'not higher than 99.0.0'],
    ['a higher version was released', '99.9.0', releasedBefore('99.10.0'), 'not higher than 99.10.0'],
    ['nothing is unreleased', '99.0.0', committed('CHANGELOG.md', unreleased, '\n'), 'says nothing under Unreleased'],
    ['the section is missing', '99.0.0', committed('CHANGELOG.md', 'Unreleased', 'Next'), 'the section Unreleased'],
    [
      'npm can not check where it comes from',
      '99.0.0',
      committed('package.json', /.*"repository".*\n/, ''),
      'repository',
    ],
  ])('if %s', async (_, version, prepare, problem) => {
    const copy = await clone()
    prepare(copy)
    const before = copy.git('status', '--porcelain')
    const { code, output } = await copy.release(version)
    expect([code, output]).toEqual([1, expect.stringContaining(problem)])
    expect(output.trim().split('\n').length).toBeLessThanOrEqual(2)
    expect(copy.git('status', '--porcelain')).toBe(before)
  })

  function committed(path: string, pattern: string | RegExp, replacement: string) {
    return (copy: Clone): void => {
      copy.change(path, pattern, replacement)
      copy.commit()
    }
  }

  function releasedBefore(version: string) {
    return committed('CHANGELOG.md', '## Unreleased\n', `## Unreleased\n\nA change.\n\n## ${version} - 2026-01-31\n`)
  }
})
