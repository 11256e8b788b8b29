// Prepares a release, or says why it can't: writes the version into the manifests, and dates the changelog's section.
//   npm run release -- 0.2.0 --dry-run
// docs/contributing.md says what comes before and after.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({ allowPositionals: true, options: { 'dry-run': { type: 'boolean' } } })
const [version = ''] = positionals

const changelog = readFileSync('CHANGELOG.md', 'utf8')
const [, unreleased = '', ...releases] = changelog.split(/^## /m)
const [title, ...changes] = unreleased.split('\n')
const heading = `## ${version} - ${new Date().toISOString().slice(0, 10)}`

const problems = findProblems()
if (problems.length > 0) {
  console.error(problems.join('\n'))
  process.exitCode = 1
} else if (values['dry-run']) {
  console.log(`Would write ${version} into package.json, package-lock.json and the examples, and into CHANGELOG.md:\n`)
  console.log(`${heading}\n${changes.join('\n')}`)
  execFileSync('npm', ['pack', '--dry-run'], { stdio: 'inherit' })
} else {
  write()
  console.log(`Wrote ${version} into package.json, package-lock.json, the examples and CHANGELOG.md. When you have read the diff:
  git commit -am 'release: ${version}' && git tag v${version} && git push --atomic origin HEAD v${version}`)
}

function findProblems(): readonly string[] {
  const changed = execFileSync('git', ['status', '--porcelain'], { encoding: 'utf8' })
  const last = /^[\d.]+/.exec(releases[0] ?? '')?.[0] ?? ''
  const checks: readonly [passed: boolean, problem: string][] = [
    [changed === '', `commit or stash what has changed:\n${changed}`],
    [/^\d+\.\d+\.\d+$/.test(version), `${JSON.stringify(version)} is no version such as 0.2.0`],
    [
      last === '' || compare(version, last) > 0,
      `${version} is not higher than ${last}, the last version in CHANGELOG.md`,
    ],
    [title === 'Unreleased', 'CHANGELOG.md does not begin with the section Unreleased'],
    [changes.some((line) => line !== ''), 'CHANGELOG.md says nothing under Unreleased'],
    [
      readManifest().repository !== undefined,
      'package.json has no repository, without which npm rejects the provenance',
    ],
  ]
  return checks.flatMap(([passed, problem]) => (passed ? [] : [problem]))
}

function readManifest(): { readonly repository?: unknown } {
  return JSON.parse(readFileSync('package.json', 'utf8'))
}

/** Compares versions, number by number. */
function compare(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true })
}

function write(): void {
  // The version in package.json is the next one until the first release.
  execFileSync('npm', ['version', version, '--no-git-tag-version', '--allow-same-version'], { stdio: 'pipe' })
  for (const name of readdirSync('examples'))
    replaceIn(`examples/${name}/package.json`, /(?<="media-webhooks": "\^)[\d.]+/, version)
  replaceIn('CHANGELOG.md', '## Unreleased\n', `## Unreleased\n\n${heading}\n`)
}

function replaceIn(path: string, pattern: string | RegExp, replacement: string): void {
  writeFileSync(path, readFileSync(path, 'utf8').replace(pattern, replacement))
}
