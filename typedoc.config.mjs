import { readFileSync } from 'node:fs'
import { Converter } from 'typedoc'
import ts from 'typescript'

const tsconfig = 'docs/tsconfig.json'
const { paths } = ts.parseConfigFileTextToJson(tsconfig, readFileSync(tsconfig, 'utf8')).config.compilerOptions
const sources = new Map(
  Object.entries(paths).flatMap(([name, [path]]) => (name.startsWith('#') ? [] : [[path.replace('../', ''), name]])),
)

/** Names each module as users import it. */
function nameModules(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.children ?? [])
      module.name = sources.get(`${module.name}.ts`) ?? sources.get(`${module.name}/index.ts`) ?? module.name
  })
}

/** The function that a reader looks for first. The others are in the order of their source. */
function putFirst(app) {
  app.converter.on(
    Converter.EVENT_RESOLVE_END,
    ({ project }) => {
      const functions = project.children
        ?.find(({ name }) => name === 'media-webhooks')
        ?.groups?.find(({ title }) => title === 'Functions')
      functions?.children.sort((a, b) => Number(b.name === 'createReceiver') - Number(a.name === 'createReceiver'))
    },
    // Groups are made at the end.
    -1_000,
  )
}

export default {
  plugin: ['typedoc-plugin-markdown', nameModules, putFirst],
  tsconfig,
  entryPoints: [...sources.keys()],
  out: 'docs/api',
  router: 'member',
  entryFileName: 'index',
  modulesFileName: 'index',
  name: 'API reference',
  pageTitleTemplates: { member: '{name}' },
  indexFormat: 'table',
  readme: 'none',
  sort: ['source-order'],
  // `npm run types` is that check.
  skipErrorChecking: true,
  disableSources: true,
  hideBreadcrumbs: true,
  hidePageHeader: true,
  parametersFormat: 'table',
  groupOrder: ['Functions', 'Classes', 'Interfaces', 'Type Aliases', '*'],
  tableColumnSettings: { hideModifiers: true, hideInherited: true, hideOverrides: true },
  // A broken link in a docstring fails the build.
  validation: { notExported: false, invalidLink: true },
  treatValidationWarningsAsErrors: true,
  excludePrivate: true,
  excludeInternal: true,
}
