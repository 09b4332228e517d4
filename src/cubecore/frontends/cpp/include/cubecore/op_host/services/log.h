// The log that host code writes to: warnings and errors go to standard error, the rest nowhere.
// Levels are those of page "日志级别"; the functions are as public host code calls them.
#pragma once

#include <cstdarg>
#include <cstdio>

constexpr int DLOG_DEBUG = 0, DLOG_INFO = 1, DLOG_WARN = 2, DLOG_ERROR = 3, DLOG_EVENT = 16;
constexpr int DLOG_TYPE_DEBUG = 0, DLOG_TYPE_RUN = 1;
constexpr int OP = 63;  // the module of operators
constexpr int MSG_LENGTH = 1024;

inline int AlogCheckDebugLevel(int, int level) { return level == DLOG_WARN || level == DLOG_ERROR; }
inline int CheckLogLevel(int, int level) { return AlogCheckDebugLevel(0, level); }
inline void AlogRecord(int, int, int level, const char* format, ...) {
  if (AlogCheckDebugLevel(0, level) == 0) return;
  va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
  std::fputc('\n', stderr);
}
template <typename... A>
inline void DlogRecord(int module, int level, const char* format, A... values) {
  AlogRecord(module, DLOG_TYPE_DEBUG, level, format, values...);
}

template <typename... A>
inline void DlogSub(int module, const char*, int level, const char* format, A... values) {
  AlogRecord(module, DLOG_TYPE_DEBUG, level, format, values...);
}

// Words that builds of public repositories give their own macros of logs.
#ifndef OPS_UTILS_LOG_SUB_MOD_NAME
#define OPS_UTILS_LOG_SUB_MOD_NAME "OP"
#endif
#ifndef OPS_UTILS_LOG_PACKAGE_TYPE
#define OPS_UTILS_LOG_PACKAGE_TYPE "OP"
#endif

// The sentence is in the log already.
#define REPORT_INNER_ERR_MSG(...) \
  do {                            \
  } while (false)
#define REPORT_INNER_ERROR(...) REPORT_INNER_ERR_MSG(__VA_ARGS__)
#define REPORT_CALL_ERROR(...) REPORT_INNER_ERR_MSG(__VA_ARGS__)
