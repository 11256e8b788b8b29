import { afterEach, vi } from 'vitest'

// Vitest waits for 1 s unless it is told otherwise, which is too short on a busy machine. It stops waiting once the condition holds.
const timeout = 60_000
const { waitFor, waitUntil } = vi

// Once in each process, which may run many files.
if (!Object.hasOwn(globalThis, '__waitsLonger')) {
  Object.assign(globalThis, { __waitsLonger: true })
  vi.waitFor = (run, options = timeout) => waitFor(run, typeof options === 'number' ? options : { timeout, ...options })
  vi.waitUntil = (run, options = timeout) =>
    waitUntil(run, typeof options === 'number' ? options : { timeout, ...options })
}

// fast-check prints the seed of a property that fails. All other random numbers come from `testSeed`.
const { SEED: givenSeed } = process.env
if (givenSeed !== undefined) {
  const { default: fc } = await import('fast-check')
  fc.configureGlobal({ seed: Number(givenSeed) })
}

afterEach(({ task }) => {
  const { SEED: seed } = process.env
  if (seed !== undefined && task.result?.state === 'fail') console.error(`SEED=${seed} repeats its random numbers`)
  if (givenSeed === undefined) delete process.env['SEED']
})
