import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cp, mkdtemp, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { postJson } from '../support/post-json.ts'
import { startProgram } from '../support/program.ts'

const fixtures = fileURLToPath(new URL('./fixtures/', import.meta.url))
const installed = (path: string) => join(inject('userFolder'), 'node_modules/media-webhooks', path)
const isPage = (path: string) => /^(docs\/(decisions\/)?)?[\w-]+\.md$/.test(path)

describe('the packed package', () => {
  test('holds what was built, the texts around it, and nothing else', () => {
    const topLevel = new Set(inject('packedFiles').map((path) => path.split('/', 1)[0]))
    expect([...topLevel].sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'dist',
      'docs',
      'package.json',
    ])
  })

  test('holds the pages, and every file that a page or the README leads to', () => {
    const packed = inject('packedFiles')
    const pages = packed.filter(isPage)
    expect(pages).toEqual(expect.arrayContaining(['README.md', 'docs/getting-started.md', 'docs/troubleshooting.md']))
    const missing = pages.flatMap((page) => {
      const links = Array.from(
        read(page).matchAll(/\]\(([^)\s#]+)[^)]*\)|(?:src|srcset)="([^"]+)"/g),
        ([, a, b]) => a ?? b ?? '',
      )
      const targets = links.filter((link) => !/^https?:/.test(link)).map((link) => join(dirname(page), link))
      return targets.filter((target) => !packed.includes(target)).map((target) => `${page}: ${target}`)
    })
    expect(missing).toEqual([])
  })

  test('holds no other file in docs/ but what the pages show and link', () => {
    const others = inject('packedFiles').filter((path) => path.startsWith('docs/') && !isPage(path))
    expect(others.sort()).toEqual([
      'docs/alerts.yaml',
      'docs/dashboard-dark.png',
      'docs/dashboard-light.png',
      'docs/emulator-dark.png',
      'docs/emulator-light.png',
      'docs/grafana-dashboard.json',
    ])
  })

  test('holds JavaScript and types only, and names no folder of the machine that built it', () => {
    const built = inject('packedFiles').filter((path) => path.startsWith('dist/'))
    const code = built.filter((path) => !/^dist\/third-party\/.+\/LICENSE$/.test(path))
    expect(
      code.filter((path) => !/^dist\/(src|adapters|third-party|_virtual)\/.+\.(c?js|d\.c?ts)$/.test(path)),
    ).toEqual([])
    const root = fileURLToPath(new URL('../../', import.meta.url))
    const naming = built.filter(
      (path) => /(\.\.\/|\/\/#region )(test|bench|demo)\//.test(read(path)) || read(path).includes(root),
    )
    expect(naming).toEqual([])
  })

  test('holds the licence of each package that is built into it', () => {
    const builtIn = inject('packedFiles').flatMap(
      (path) => /^dist\/third-party\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? [],
    )
    expect([...new Set(builtIn)].sort()).toEqual(['@hono/node-server', 'hono'])
    for (const name of builtIn)
      expect(read(`dist/third-party/${name}/LICENSE`)).toContain('Permission is hereby granted')
  })
})

test('a server of the installed package takes a real delivery', async () => {
  const cwd = inject('userFolder')
  await cp(join(fixtures, 'server.js'), join(cwd, 'server.js'))
  const server = await startProgram(process.execPath, ['server.js'], { cwd }, /^listening on (\d+)$/)
  onTestFinished(async () => void (await server.stop()))
  const deliver = (token: string) =>
    postJson(`http://127.0.0.1:${server.captured}/?token=${token}`, {
      type: 'encoding.finished',
      media_id: 'a-film',
      qualities: '360p,720p',
    })

  const accepted = await deliver('a-secret')
  expect([accepted.status, await accepted.json()]).toEqual([200, { status: 'accepted' }])
  expect((await deliver('a-guess')).status).toBe(401)
  await expect.poll(() => server.output()).toContain('handled a-film 360p+720p')
})

test('the installed command runs the emulator, with its page and all that the page loads', async () => {
  const cwd = inject('userFolder')
  const bin = join(cwd, 'node_modules/.bin/media-webhooks')
  const emulator = await startProgram(bin, ['emulate', '--port', '0', '--json'], { cwd }, /"url":"([^"]+)"/)
  onTestFinished(async () => void (await emulator.stop()))

  const { url, credentials } = JSON.parse(emulator.output())
  const page = await (await fetch(url)).text()
  const loaded = Array.from(page.matchAll(/(?:href|src)="(\/page\/[^"]+)"/g), ([, path]) => path as string)
  expect(loaded).toEqual(expect.arrayContaining(['/page/style.css', '/page/browser.js']))
  for (const path of loaded) expect([path, (await fetch(new URL(path, url))).status]).toEqual([path, 200])

  const environment = { MEDIA_WEBHOOKS_BASE_URL: url, MEDIA_WEBHOOKS_ACCESS_TOKEN: credentials.accessToken }
  const list = await startProgram(bin, ['webhooks', 'list', '--json'], { cwd, env: environment }, /(.*)/)
  expect(JSON.parse(list.captured)).toMatchObject({ total: 0 })
  expect(await emulator.stop('SIGINT')).toBe(0)
})

describe('a TypeScript project', () => {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')

  /** The compiler's messages about a fixture; none if it is valid. */
  async function check(file: string, options: object): Promise<string> {
    const compilerOptions = { target: 'es2023', strict: true, noEmit: true, ...options }
    const folder = await mkdtemp(join(inject('userFolder'), 'typed-'))
    await cp(join(fixtures, file), join(folder, file))
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }))
    try {
      return execFileSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' })
    } catch (error) {
      return (error as { stdout: string }).stdout
    }
  }

  test.each([
    { file: 'every-entry.ts', module: 'node16', moduleResolution: 'node16' },
    { file: 'every-entry.ts', module: 'nodenext', moduleResolution: 'nodenext' },
    { file: 'every-entry.ts', module: 'esnext', moduleResolution: 'bundler' },
    { file: 'every-entry.cts', module: 'node16', moduleResolution: 'node16' },
    { file: 'every-entry.cts', module: 'nodenext', moduleResolution: 'nodenext' },
  ])('checks $file with moduleResolution $moduleResolution, misuse included', async ({ file, ...resolution }) => {
    expect(await check(file, { ...resolution, types: ['node'], skipLibCheck: true })).toBe('')
  })

  test('needs no types of Node for the default entry, whose declarations hold up by themselves', async () => {
    const withoutNode = { types: [], lib: ['es2023', 'dom'] }
    expect(await check('default-entry.ts', { module: 'nodenext', ...withoutNode, skipLibCheck: false })).toBe('')
  })
})

function read(path: string): string {
  return readFileSync(installed(path), 'utf8')
}
