import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import limits from '../../bench/limits.json' with { type: 'json' }
import manifest from '../../package.json' with { type: 'json' }
import { commands } from '../../src/cli/commands/index.ts'
import { pageOf } from './pages.ts'

// What GitHub reads. It says nothing about a command that is missing or a version that nobody tests, and drops a form that it
// can't read.

interface Job {
  readonly uses?: string
  readonly needs?: string
  readonly permissions?: unknown
  readonly 'timeout-minutes'?: number
  readonly strategy?: { readonly matrix: { readonly node: readonly number[] } }
  readonly steps?: readonly Step[]
}

interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: { readonly 'node-version'?: number }
}

interface Workflow {
  readonly on: object
  readonly permissions: unknown
  readonly jobs: Readonly<Record<string, Job>>
}

interface Field {
  readonly type: string
  readonly id?: string
  readonly attributes: { readonly label?: string; readonly value?: string; readonly options?: readonly string[] }
}

interface Form {
  readonly name: string
  readonly description: string
  readonly body: readonly Field[]
}

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string): string => readFileSync(root + path, 'utf8')
const namesIn = (folder: string): readonly string[] => readdirSync(`${root}.github/${folder}`)

const workflows = namesIn('workflows').map(
  (name) => [name, parse(read(`.github/workflows/${name}`)) as Workflow] as const,
)
const formNames = namesIn('ISSUE_TEMPLATE').filter((name) => name !== 'config.yml')
const forms = formNames.map((name) => [name, parse(read(`.github/ISSUE_TEMPLATE/${name}`)) as Form] as const)

const jobsOf = (workflow: Workflow): readonly Job[] => Object.values(workflow.jobs)
const stepsOf = (workflow: Workflow) => jobsOf(workflow).flatMap(({ steps = [] }) => steps)

test('CI runs on the oldest Node of the package and on LTS versions after it, none left out, each with limits of the benchmark', () => {
  const { jobs } = Object.fromEntries(workflows)['ci.yml'] as Workflow
  const majors = jobs['check']?.strategy?.matrix.node ?? []
  const oldest = Number(/\d+/.exec(manifest.engines.node)?.[0])
  const [, later = ''] = /^for version in ([\d ]+);/m.exec(read('test/nodes.sh')) ?? []
  expect(majors).toEqual(majors.map((_, index) => oldest + 2 * index))
  expect(later.split(' ').map(Number)).toEqual(expect.arrayContaining(majors.slice(1)))
  expect(Object.keys(limits).map(Number)).toEqual(majors)
})

test.each(workflows)('%s may only read, and each of its jobs ends', (_, workflow) => {
  expect(workflow.permissions).toEqual({ contents: 'read' })
  const endless = jobsOf(workflow).filter((job) => job.uses === undefined && job['timeout-minutes'] === undefined)
  expect(endless).toEqual([])
})

test.each(workflows)('every file, script and workflow that %s runs exists', (_, workflow) => {
  const lines = stepsOf(workflow).flatMap(({ run = '' }) => run.split('\n'))
  const files = lines.flatMap((line) => line.match(/(?<=^|\s)\.?[\w-]+(\/[\w.-]+)+(?=\s|$)/g) ?? [])
  const scripts = lines.flatMap((line) => Array.from(line.matchAll(/npm run ([\w:]+)/g), ([, name = '']) => name))
  const used = [...jobsOf(workflow), ...stepsOf(workflow)].flatMap(({ uses = '' }) => uses)
  const ours = used.filter((name) => name.startsWith('./')).map((name) => name.slice(2))
  expect([...files, ...ours].filter((path) => !existsSync(root + path))).toEqual([])
  expect(scripts.filter((name) => !(name in manifest.scripts))).toEqual([])
  expect(files.length + scripts.length + ours.length).toBeGreaterThan(0)
})

test('a tag publishes what CI has passed, with provenance', () => {
  const { 'ci.yml': ci, 'release.yml': release } = Object.fromEntries(workflows)
  expect(release?.on).toEqual({ push: { tags: ['v*'] } })
  expect(release?.jobs['check']?.uses).toBe('./.github/workflows/ci.yml')
  expect(ci?.on).toHaveProperty('workflow_call')
  const publish = release?.jobs['publish']
  expect(publish?.needs).toBe('check')
  expect(publish?.permissions).toEqual({ contents: 'read', 'id-token': 'write' })
  expect(publish?.steps?.at(-1)?.run).toContain('npm publish --provenance')
  const versions = publish?.steps?.flatMap((step) => step.with?.['node-version'] ?? []) ?? []
  expect(ci?.jobs['check']?.strategy?.matrix.node).toEqual(expect.arrayContaining(versions))
})

test.each(forms)('%s is a form that GitHub shows', (_, { name, description, body }) => {
  expect([name, description]).toEqual([expect.any(String), expect.any(String)])
  const ids = body.flatMap(({ type, id }) => (type === 'markdown' ? [] : [id]))
  expect(ids).toEqual([...new Set(ids)].filter((id) => /^[\w-]+$/.test(id ?? '')))
  for (const { type, attributes } of body) {
    expect(['markdown', 'textarea', 'input', 'dropdown', 'checkboxes']).toContain(type)
    expect(type === 'markdown' ? attributes.value : attributes.label).toEqual(expect.any(String))
  }
})

test('the forms name commands that exist, and the bug report every inbox', () => {
  const texts = formNames.map((name) => read(`.github/ISSUE_TEMPLATE/${name}`)).join('')
  const named = texts.match(/(?<=npx media-webhooks )[a-z]+/g)
  expect(named).toContain('doctor')
  expect(commands.map(({ name }) => name)).toEqual(expect.arrayContaining([...new Set(named)]))
  const bug = forms.find(([name]) => name === 'bug.yml')?.[1]
  const inboxes = bug?.body.find(({ id }) => id === 'inbox')?.attributes.options ?? []
  const [row = ''] = /^\| `InboxDefinition`.*$/m.exec(pageOf('architecture').text) ?? []
  const all = Array.from(row.matchAll(/`([a-z]\w+Inbox)`/g), ([, name]) => name)
  expect(inboxes.filter((name) => name.endsWith('Inbox'))).toEqual(all)
})

test('whoever opens an issue about a vulnerability is sent to SECURITY.md', () => {
  const { contact_links: links } = parse(read('.github/ISSUE_TEMPLATE/config.yml'))
  expect(links).toEqual([expect.objectContaining({ about: expect.stringContaining('SECURITY.md') })])
  expect(links[0].url).toMatch(/^https:\/\//)
  expect(existsSync(`${root}SECURITY.md`)).toBe(true)
})

test('Dependabot finds a manifest in each folder that it watches', () => {
  const manifests = { npm: 'package-lock.json', 'github-actions': '.github/workflows' }
  const updates: readonly { 'package-ecosystem': keyof typeof manifests; directory: string }[] = parse(
    read('.github/dependabot.yml'),
  ).updates
  const watched = updates.map((update) => `${update.directory.slice(1)}${manifests[update['package-ecosystem']]}`)
  expect(watched).toEqual(Object.values(manifests))
  expect(watched.filter((path) => !existsSync(root + path))).toEqual([])
})
