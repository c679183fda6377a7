// Where the definitions of Asio and Beast are compiled, once.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
