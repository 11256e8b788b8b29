import { nodeProgram } from './node-program.ts'
import { provePlatform } from './platform.suite.ts'

provePlatform('koa sqlite', nodeProgram('koa', 'sqlite'))
