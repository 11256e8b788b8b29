import { readdirSync, readFileSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { guarded } from '../../src/internal/guarded.ts'
import { dashboard } from '../../src/operate/dashboard/index.ts'
import { receiverWith } from '../receiver/listening-receiver.ts'

const error = new Error('no')

test('a function that throws or rejects tells its error, and nothing else happens', async () => {
  const threw = vi.fn()
  const fails = () => {
    throw error
  }
  expect(guarded(fails, threw)).toBe(undefined)
  await expect(guarded(() => Promise.reject(error), threw)).rejects.toBe(error)
  expect(threw.mock.calls).toEqual([[error], [error]])
  expect(guarded(() => 7, threw)).toBe(7)
})

test('a page is answered although authorize never decides', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const page = dashboard(receiverWith(), { authorize: () => new Promise<boolean>(() => {}) })
    const answer = page.fetch(new Request('http://localhost/'))
    await vi.advanceTimersByTimeAsync(10_000)
    expect((await answer).status).toBe(500)
  } finally {
    vi.useRealTimers()
  }
})

/** Functions that users give, and that our code calls where nobody awaits them. */
const given = /(?<![\w.#'"`])(?:redact|onProblem|listener|each\[kind\]|onError)(?:\?\.)?\((?!handler)/

/** Their listeners are ours, or report errors as uncaught, which is documented. */
const ours = ['src/service/emulator/shared/changes.ts', 'src/service/emulator/service/service.ts']

test('functions of users are called by guarded only', () => {
  const files = ['src', 'adapters'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  )
  const sources = files.filter((name) => /\.tsx?$/.test(name))
  expect(sources.length).toBeGreaterThan(300)
  const bare = sources.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, index, lines) => {
        const near = lines.slice(Math.max(0, index - 6), index + 1).join('\n')
        const isComment = /^\s*(?:\*|\/\/|\/\*)/.test(line)
        if (isComment || ours.includes(file) || !given.test(line) || /guarded\w*\(/.test(near)) return []
        return [`${file}:${index + 1}: ${line.trim()}`]
      }),
  )
  expect(bare).toEqual([])
})
