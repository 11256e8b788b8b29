import { chmod, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { eventOf } from '../../support/inbox.ts'
import { drivers, freshPath, started } from './sqlite-tests.ts'

const filesBeside = async (path: string) =>
  (await readdir(dirname(path))).map((name) => name.replace(basename(path), '')).sort()

test.each(Object.entries(drivers))('the lock of an inbox is one file, with %s', async (_, open) => {
  const path = await freshPath()
  const database = open(path)
  const { inbox } = started({ database })
  await inbox.accept(eventOf('one'))
  expect(await filesBeside(path)).toEqual(['', '-lock', '-shm', '-wal'])
  expect(database.prepare('PRAGMA main.journal_mode').get()).toMatchObject({ journal_mode: 'wal' })
  expect(database.prepare('PRAGMA inbox_lock.journal_mode').get()).toMatchObject({ journal_mode: 'memory' })
})

/** The permissions of an inbox's files, in octal, for a process with the usual umask. */
async function modesOf(path: string) {
  const umask = process.umask(0o022)
  onTestFinished(() => void process.umask(umask))
  const { inbox } = started({ path })
  await inbox.accept(eventOf('one'))
  const modeOf = async (name: string) => [name, ((await stat(`${path}${name}`)).mode & 0o777).toString(8)]
  return Object.fromEntries(await Promise.all((await filesBeside(path)).map(modeOf)))
}

test('the files that an inbox makes can be read by nobody else: they have payloads in them', async () => {
  expect(await modesOf(await freshPath())).toEqual({ '': '600', '-lock': '600', '-shm': '600', '-wal': '600' })
})

test('so is the file that it makes at the end of a link', async () => {
  const path = await freshPath()
  const link = join(dirname(path), 'link')
  await symlink(path, link)
  started({ path: link })
  expect(((await stat(path)).mode & 0o777).toString(8)).toBe('600')
})

test('a file that was there keeps its permissions, and those beside it get the same', async () => {
  const path = await freshPath()
  await writeFile(path, '')
  await chmod(path, 0o640)
  expect(await modesOf(path)).toEqual({ '': '640', '-lock': '640', '-shm': '640', '-wal': '640' })
})
