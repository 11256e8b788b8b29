import { readdirSync, readFileSync } from 'node:fs'

const root = new URL('../../', import.meta.url)

/** Reads the source files of a folder: their paths from the root of the repository, and their texts. */
export const sourceTexts = (folder: string): readonly (readonly [path: string, text: string])[] =>
  readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(tsx?|js)$/.test(path))
    .map((path) => [`${folder}/${path}`, readFileSync(new URL(`${folder}/${path}`, root), 'utf8')])
